#include "agent/runtime/exec_input.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace bmgpu::agent {

ExecInput::ExecInput() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check(wake_.valid(), "exec: eventfd");
}

void ExecInput::wake() { ::eventfd_write(wake_.get(), 1); }

bool ExecInput::write(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || cancelled_ || bytes_.size() + bytes.size() > kExecInputBytesMax) {
      return false;
    }
    bytes_ += bytes;
  }
  wake();
  return true;
}

void ExecInput::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake();
}

void ExecInput::resize(TerminalSize size) {
  {
    const std::lock_guard lock(mutex_);
    size_ = size;
  }
  wake();
}

void ExecInput::cancel() {
  cancelled_ = true;
  wake();
}

std::size_t ExecInput::room() const {
  const std::lock_guard lock(mutex_);
  return closed_ ? 0 : kExecInputBytesMax - bytes_.size();
}

void ExecInput::clear_wake() {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
}

std::string ExecInput::take(std::size_t bytes_max) {
  const std::lock_guard lock(mutex_);
  std::string out = bytes_.substr(0, bytes_max);
  bytes_.erase(0, out.size());
  return out;
}

bool ExecInput::at_end() const {
  const std::lock_guard lock(mutex_);
  return closed_ && bytes_.empty();
}

std::optional<TerminalSize> ExecInput::take_size() {
  const std::lock_guard lock(mutex_);
  return std::exchange(size_, std::nullopt);
}

}  // namespace bmgpu::agent
