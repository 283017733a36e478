#include "agent/runtime/shim.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "agent/runtime/attempt_dir.h"
#include "agent/runtime/files.h"
#include "agent/runtime/shim_job.h"
#include "agent/runtime/shim_loop.h"

namespace bmgpu::agent {

void say(const std::string& text) { std::fprintf(stderr, "shim: %s\n", text.c_str()); }

void say_failure(const char* what, const Result<void>& outcome) {
  if (!outcome.ok()) {
    say(std::string(what) + ": " + outcome.error().message);
  }
}

namespace {

// The lock that says "a shim lives". Held until the process ends.
Result<bool> take_lock(const AttemptDir& dir, Fd& fd) {
  fd = Fd(::open(dir.lock_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return errno_error(dir.lock_path(), errno);
  }
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    return false;
  }
  // The pid is for people; a full disk, which may not take it, keeps no shim from its work.
  const std::string pid = std::to_string(::getpid()) + "\n";
  const auto size = static_cast<ssize_t>(pid.size());
  if (::pwrite(fd.get(), pid.data(), pid.size(), 0) != size || ::ftruncate(fd.get(), size) != 0) {
    say_failure("pid", errno_error(dir.lock_path(), errno));
  }
  return true;
}

}  // namespace

int shim_main(const std::string& attempt_dir) {
  const AttemptDir dir(attempt_dir);
  Fd lock;
  const Result<bool> locked = take_lock(dir, lock);
  if (!locked.ok()) {
    say(locked.error().message);
    return 1;
  }
  if (!*locked) {
    return 0;  // another one lives
  }
  Result<v1::ShimOrder> order = dir.read_order();
  if (!order.ok()) {
    say(order.error().message);
    return 1;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const Result<v1::AttemptStatus> status = dir.read_status();
  if (status.ok() && status->phase() == v1::ATTEMPT_PHASE_ENDED) {
    const Result<void> removed = remove_job(*order, dir);
    say_failure("remove", removed);
    return removed.ok() ? 0 : 1;
  }
  return Shim(dir, std::move(*order)).run();
}

}  // namespace bmgpu::agent
