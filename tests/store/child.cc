#include "store/child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/check.h"

namespace bmgpu::store {

Child::Child(const std::function<int(const Report&)>& body) {
  std::array<int, 2> ends{};
  check(::pipe(ends.data()) == 0, "child: no pipe");
  pid_ = ::fork();
  check(pid_ >= 0, "child: no process");
  if (pid_ == 0) {
    ::close(ends[0]);
    const int to_parent = ends[1];
    ::_exit(body([to_parent](std::uint64_t number) {
      check(::write(to_parent, &number, sizeof number) == sizeof number, "child: no reader");
    }));
  }
  ::close(ends[1]);
  from_child_ = ends[0];
}

Child::~Child() {
  kill();
  wait();
  ::close(from_child_);
}

std::optional<std::uint64_t> Child::next() {
  std::uint64_t number = 0;
  const ssize_t size = ::read(from_child_, &number, sizeof number);
  return size == sizeof number ? std::optional(number) : std::nullopt;
}

void Child::kill() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
  }
}

int Child::wait() {
  if (!status_) {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0) {
      check(errno == EINTR, "child: lost");
    }
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  return *status_;
}

}  // namespace bmgpu::store
