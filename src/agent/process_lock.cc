#include "agent/process_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>

namespace bmgpu::agent {
namespace {

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// The pid in the file, 0 if there is none.
pid_t read_pid(const std::string& path) {
  const Result<std::string> text = read_file(path, 64);
  pid_t pid = 0;
  if (text) {
    std::from_chars(text->data(), text->data() + text->size(), pid);
  }
  return pid;
}

}  // namespace

Result<ProcessLock> ProcessLock::take(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return errno_error("open " + path, errno);
  }
  struct flock lock = whole_file();
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    return Error{ErrorCode::Unavailable,
                 path + " is held by process " + std::to_string(read_pid(path))};
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return errno_error("write " + path, errno);
  }
  return ProcessLock(std::move(fd));
}

bool ProcessLock::held(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = whole_file();
  return fd.valid() && fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Result<void> ProcessLock::stop_holder(const std::string& path, std::chrono::milliseconds limit) {
  if (!held(path)) {
    return {};
  }
  // The pid is the holder's if the lock is still held once the process is pinned down.
  const pid_t pid = read_pid(path);
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid() || !held(path)) {
    return {};
  }
  if (syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0 && errno != ESRCH) {
    return errno_error("end process " + std::to_string(pid), errno);
  }
  pollfd ended{process.get(), POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(limit.count())) <= 0) {
    return Error{ErrorCode::DeadlineExceeded,
                 "process " + std::to_string(pid) + ", which holds " + path + ", does not end"};
  }
  return {};
}

}  // namespace bmgpu::agent
