#include "agent/detach.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "agent/runtime/files.h"

namespace bmgpu::agent {
namespace {

constexpr int kExecFailed = 127;

// Between fork and exec of a program with threads: async-signal-safe calls only.
[[noreturn]] void become(char* const* argv, int null_fd, int error_fd) {
  setsid();
  const pid_t child = fork();
  if (child != 0) {
    _exit(child < 0 ? kExecFailed : 0);
  }
  dup2(null_fd, STDIN_FILENO);
  dup2(null_fd, STDOUT_FILENO);
  dup2(error_fd, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir("/") == 0) {
    execv(argv[0], argv);
  }
  _exit(kExecFailed);
}

}  // namespace

Result<void> spawn_detached(const std::vector<std::string>& argv, const std::string& error_file) {
  check(!argv.empty(), "spawn_detached: no program");
  const Fd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  const Fd error_fd(open(error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null_fd.valid() || !error_fd.valid()) {
    return errno_error("open " + error_file, errno);
  }
  if (access(argv[0].c_str(), X_OK) != 0) {
    return errno_error("run " + argv[0], errno);
  }
  std::vector<char*> words;
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    return errno_error("fork", errno);
  }
  if (child == 0) {
    become(words.data(), null_fd.get(), error_fd.get());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::Unavailable, "no further process can be started"};
  }
  return {};
}

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace bmgpu::agent
