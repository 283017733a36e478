#include "agent/gpu/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "agent/host/durable_file.h"
#include "agent/host/facts.h"

extern char** environ;

namespace bmgpu::agent {
namespace {

constexpr int kChildFd = 3;
constexpr std::int64_t kGraceMs = 50;
constexpr std::string_view kProfileVariable = "BMGPU_NVML_SIM_PROFILE=";

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) {
    out.push_back(word.data());
  }
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment(const std::string& sim_profile) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(kProfileVariable)) {
      out.emplace_back(*entry);
    }
  }
  if (!sim_profile.empty()) {
    out.push_back(std::string(kProfileVariable) + sim_profile);
  }
  return out;
}

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_worker(int socket, pid_t parent, char* const* argv, char* const* env) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // dup2 of a descriptor onto itself would keep its close-on-exec flag.
  const bool placed =
      socket == kChildFd ? fcntl(socket, F_SETFD, 0) == 0 : dup2(socket, kChildFd) == kChildFd;
  syscall(SYS_close_range, kChildFd + 1, ~0u, 0);
  if (getppid() == parent && placed) {
    execve(argv[0], argv, env);
  }
  _exit(127);
}

// Whether the process waits for a processor rather than for the driver.
bool wants_to_run(pid_t pid) {
  const Result<std::string> stat = read_small_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  const std::size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
  return name_end != std::string::npos && stat->compare(name_end + 2, 1, "R") == 0;
}

}  // namespace

bool CondemnedProcess::gone(int limit_ms) {
  const auto reaped = [this] {
    const pid_t code = waitpid(pid_, nullptr, WNOHANG);
    return code == pid_ || (code < 0 && errno == ECHILD);
  };
  if (reaped()) {
    return true;
  }
  if (limit_ms > 0) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    if (fd >= 0) {
      pollfd wait{fd, POLLIN, 0};
      poll(&wait, 1, limit_ms);
      close(fd);
    }
  }
  return reaped();
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(std::vector<std::string> command,
                                                            const std::string& library,
                                                            const std::string& sim_profile) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return Error{ErrorCode::Unavailable,
                 std::string("cannot make a socket pair: ") + std::strerror(errno)};
  }
  command.push_back("--fd=" + std::to_string(kChildFd));
  command.push_back("--library=" + library);
  std::vector<std::string> variables = environment(sim_profile);
  const std::vector<char*> argv = pointers(command);
  const std::vector<char*> env = pointers(variables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become_worker(sockets[1], parent, argv.data(), env.data());
  }
  const int code = errno;
  close(sockets[1]);
  if (pid < 0) {
    close(sockets[0]);
    return Error{ErrorCode::Unavailable,
                 std::string("cannot start the NVML worker: ") + std::strerror(code)};
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, sockets[0]));
}

WorkerProcess::~WorkerProcess() { close(fd_); }

CondemnedProcess WorkerProcess::kill() {
  ::kill(pid_, SIGKILL);
  return CondemnedProcess(pid_);
}

WorkerProcess::Answer WorkerProcess::ask(WorkerRequest request, std::int64_t deadline_ms,
                                         int wake_fd, const std::function<bool()>& stopping,
                                         const std::function<void(const WorkerFrame&)>& on_event) {
  Answer answer;
  request.serial = ++serial_;
  if (send(fd_, &request, sizeof request, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof request)) {
    return answer;
  }
  const std::int64_t began_ms = boottime_ms();
  const std::int64_t limit_ms = std::max<std::int64_t>(deadline_ms - began_ms, 0);
  while (true) {
    if (stopping()) {
      answer.outcome = Outcome::Interrupted;
      return answer;
    }
    // Looked at once more after the deadline: this thread may have been late itself.
    const std::int64_t left_ms = std::max<std::int64_t>(deadline_ms - boottime_ms(), 0);
    std::array<pollfd, 2> fds = {{{fd_, POLLIN, 0}, {wake_fd, POLLIN, 0}}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(left_ms, 1000)));
    if ((fds[1].revents & POLLIN) != 0) {
      eventfd_t woken = 0;
      eventfd_read(wake_fd, &woken);
    }
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) {
      if (left_ms == 0 && (!wants_to_run(pid_) || boottime_ms() - began_ms >= 5 * limit_ms)) {
        answer.outcome = Outcome::Late;
        return answer;
      }
      if (left_ms == 0) {
        deadline_ms = boottime_ms() + kGraceMs;
      }
      continue;
    }
    std::optional<WorkerFrame> frame;
    if (!take_event(frame)) {
      answer.outcome = Outcome::Died;
      return answer;
    }
    if (!frame) {
      continue;
    }
    if (frame->op == WorkerOp::Event) {
      on_event(*frame);
    } else if (frame->serial == request.serial) {
      answer.outcome = Outcome::Answered;
      answer.frame = *frame;
      return answer;
    }
  }
}

bool WorkerProcess::take_event(std::optional<WorkerFrame>& event) {
  WorkerFrame frame;
  const ssize_t size = recv(fd_, &frame, sizeof frame, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    return true;
  }
  if (size != static_cast<ssize_t>(sizeof frame)) {
    return false;
  }
  event = frame;
  return true;
}

}  // namespace bmgpu::agent
