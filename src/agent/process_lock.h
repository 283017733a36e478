// A file that one process at a time holds for its life: "does one live?", and ending it by name.
#pragma once

#include <chrono>
#include <string>

#include "agent/runtime/files.h"
#include "base/result.h"

namespace bmgpu::agent {

// The lock goes with the process, however it ends. Asking never gets in the way of taking.
class ProcessLock {
 public:
  // Takes it and writes our pid into the file. Unavailable: another process holds it.
  static Result<ProcessLock> take(const std::string& path);

  static bool held(const std::string& path);

  // Sends SIGTERM to the holder and waits for its end. None: fine.
  static Result<void> stop_holder(const std::string& path, std::chrono::milliseconds limit);

 private:
  explicit ProcessLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace bmgpu::agent
