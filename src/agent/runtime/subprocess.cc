#include "agent/runtime/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agent/runtime/files.h"

namespace bmgpu::agent {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    return errno_error("pipe", errno);
  }
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

// Between fork and exec only async-signal-safe calls are allowed.
[[noreturn]] void become(char* const* argv, int in, int out, int err, int network_namespace) {
  if (network_namespace >= 0 && ::setns(network_namespace, CLONE_NEWNET) != 0) {
    ::_exit(126);
  }
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execv(argv[0], argv);
  ::_exit(127);
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void take(Fd& fd, std::string& into, std::size_t bytes_max) {
  std::array<char, 16384> buffer;
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n > 0) {
    const std::size_t room = bytes_max - std::min(bytes_max, into.size());
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(n)));
  } else if (n == 0 || errno != EINTR) {
    fd.reset();
  }
}

void give(Fd& fd, std::string_view& input) {
  const ssize_t n = ::write(fd.get(), input.data(), input.size());
  if (n > 0) {
    input.remove_prefix(static_cast<std::size_t>(n));
  } else if (errno != EINTR && errno != EAGAIN) {
    input = {};
  }
  if (input.empty()) {
    fd.reset();
  }
}

// Moves bytes until both outputs have ended. False: the deadline passed.
bool pump(Fd& in, Fd& out, Fd& err, const RunOptions& options, RunOutcome& outcome) {
  const Clock::time_point end = Clock::now() + options.deadline;
  std::string_view input = options.input;
  if (input.empty()) {
    in.reset();
  } else {
    ::fcntl(in.get(), F_SETFL, O_NONBLOCK);
  }
  while (out.valid() || err.valid()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      return false;
    }
    std::array<pollfd, 3> fds = {
        {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {in.get(), POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), static_cast<int>(left)) <= 0) {
      continue;
    }
    if (fds[0].revents != 0) {
      take(out, outcome.out, options.output_bytes_max);
    }
    if (fds[1].revents != 0) {
      take(err, outcome.err, options.output_bytes_max);
    }
    if (in.valid() && fds[2].revents != 0) {
      give(in, input);
    }
  }
  return true;
}

std::string last_words(const RunOutcome& outcome) {
  std::string text = outcome.err.empty() ? outcome.out : outcome.err;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  const std::size_t line = text.rfind('\n');
  text = line == std::string::npos ? text : text.substr(line + 1);
  return text.empty() ? "it said nothing" : text.substr(0, 500);
}

}  // namespace

Result<RunOutcome> run(const std::vector<std::string>& command, const RunOptions& options) {
  check(!command.empty(), "run: a command has at least a program");
  Result<std::string> program = find_program(command.front());
  if (!program.ok()) {
    return program.error();
  }
  std::vector<char*> argv = {program->data()};
  for (std::size_t i = 1; i < command.size(); ++i) {
    argv.push_back(const_cast<char*>(command[i].c_str()));
  }
  argv.push_back(nullptr);
  Result<Pipe> in = make_pipe();
  Result<Pipe> out = make_pipe();
  Result<Pipe> err = make_pipe();
  if (!in.ok() || !out.ok() || !err.ok()) {
    return errno_error("pipe", errno);
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(argv.data(), in->read.get(), out->write.get(), err->write.get(),
           options.network_namespace);
  }
  if (pid < 0) {
    return errno_error("fork", errno);
  }
  in->read.reset();
  out->write.reset();
  err->write.reset();
  RunOutcome outcome;
  const bool in_time = pump(in->write, out->read, err->read, options, outcome);
  if (!in_time) {
    ::kill(pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return Error{ErrorCode::DeadlineExceeded, command.front() + ": no end after " +
                                                  std::to_string(options.deadline.count()) +
                                                  " ms; killed"};
  }
  outcome.exit_code = exit_code_of(status);
  return outcome;
}

Result<std::string> run_ok(const std::vector<std::string>& command, const RunOptions& options) {
  Result<RunOutcome> outcome = run(command, options);
  if (!outcome.ok()) {
    return outcome.error();
  }
  if (outcome->exit_code != 0) {
    return Error{ErrorCode::Internal, command.front() + " failed (" +
                                          std::to_string(outcome->exit_code) +
                                          "): " + last_words(*outcome)};
  }
  return std::move(outcome->out);
}

Result<std::string> find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (::access(program.c_str(), X_OK) == 0) {
      return program;
    }
    return errno_error("cannot run " + program, errno);
  }
  const char* path = std::getenv("PATH");
  const std::string folders =
      std::string(path == nullptr ? "" : path) + ":/usr/sbin:/usr/bin:/sbin:/bin";
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string candidate = folders.substr(at, end - at) + "/" + program;
    if (end > at && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    at = end + 1;
  }
  return Error{ErrorCode::NotFound, program + " is not installed (not found in PATH)"};
}

}  // namespace bmgpu::agent
