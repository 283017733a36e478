// What a client sends to a session: bytes, their end, terminal sizes, and the wish to stop.
// Thread-safe; one thread takes, any may give.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "agent/runtime/exec.h"
#include "agent/runtime/files.h"

namespace bmgpu::agent {

class ExecInput {
 public:
  ExecInput();

  bool write(std::string_view bytes);
  void close();
  void resize(TerminalSize size);
  void cancel();
  std::size_t room() const;

  // The taker's side. Poll wake_fd() for input, then clear_wake() before taking.
  int wake_fd() const { return wake_.get(); }
  void clear_wake();
  std::string take(std::size_t bytes_max);
  bool at_end() const;  // closed, and all was taken
  std::optional<TerminalSize> take_size();
  const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  void wake();

  Fd wake_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  std::string bytes_;
  bool closed_ = false;
  std::optional<TerminalSize> size_;
};

}  // namespace bmgpu::agent
