#include "agent/runtime/detach.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/files.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

// After fork, before exec: async-signal-safe calls only, so everything was prepared.
struct Prepared {
  std::vector<char*> argv;
  std::vector<std::string> cgroup_files;
  const char* folder = nullptr;
  int log = -1;
  int null = -1;
  int report = -1;
};

void report_errno(const Prepared& prepared) {
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(prepared.report, &error, sizeof error);
}

// Moving a process to another cgroup takes the kernel 10 to 30 ms (a grace period for each tree),
// so a process of its own does it while the program already starts.
[[noreturn]] void move(const Prepared& prepared, pid_t pid) {
  ::close_range(3, ~0U, 0);  // above all `report`, which the caller waits for
  char digits[16];
  char* first = digits + sizeof digits;
  for (pid_t rest = pid; rest > 0; rest /= 10) {
    *--first = static_cast<char>('0' + rest % 10);
  }
  const auto size = static_cast<std::size_t>(digits + sizeof digits - first);
  for (const std::string& file : prepared.cgroup_files) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
      [[maybe_unused]] const ssize_t n = ::write(fd, first, size);
      ::close(fd);
    }
  }
  ::_exit(0);
}

[[noreturn]] void become(const Prepared& prepared) {
  ::dup2(prepared.null, 0);
  ::dup2(prepared.log, 1);
  ::dup2(prepared.log, 2);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < 32; ++number) {
    ::signal(number, SIG_DFL);
  }
  // All but the outputs close at exec; `report` too, which is how the parent learns of success.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (::chdir(prepared.folder) == 0) {
    ::execv(prepared.argv[0], prepared.argv.data());
  }
  report_errno(prepared);
  ::_exit(127);
}

}  // namespace

Result<void> start_detached(const std::vector<std::string>& command, const std::string& folder,
                            const std::string& log_path, const std::string& cgroup) {
  Result<std::string> program = find_program(command.front());
  if (!program.ok()) {
    return program.error();
  }
  Prepared prepared;
  prepared.argv.push_back(program->data());
  for (std::size_t i = 1; i < command.size(); ++i) {
    prepared.argv.push_back(const_cast<char*>(command[i].c_str()));
  }
  prepared.argv.push_back(nullptr);
  for (const std::string& tree : service_cgroup_trees()) {
    ::mkdir((tree + cgroup).c_str(), 0755);
    if (::mkdir((tree + cgroup + "/host").c_str(), 0755) == 0 || errno == EEXIST) {
      prepared.cgroup_files.push_back(tree + cgroup + "/host/cgroup.procs");
    }
  }
  const Fd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> pipe = {-1, -1};
  if (!log.valid() || !null.valid() || ::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return errno_error("cannot start " + command.front() + " (log " + log_path + ")", errno);
  }
  const Fd read_end(pipe[0]);
  Fd write_end(pipe[1]);
  prepared.folder = folder.c_str();
  prepared.log = log.get();
  prepared.null = null.get();
  prepared.report = write_end.get();
  const pid_t middle = ::fork();
  if (middle == 0) {
    ::setsid();
    const pid_t last = ::fork();
    if (last == 0) {
      become(prepared);
    }
    if (last < 0) {
      report_errno(prepared);
    } else if (::fork() == 0) {
      move(prepared, last);
    }
    ::_exit(0);
  }
  if (middle < 0) {
    return errno_error("fork", errno);
  }
  write_end.reset();
  while (::waitpid(middle, nullptr, 0) < 0 && errno == EINTR) {
  }
  int error = 0;
  if (::read(read_end.get(), &error, sizeof error) == sizeof error) {
    return errno_error("cannot start " + command.front(), error);
  }
  return {};
}

}  // namespace bmgpu::agent
