// Runs part of a test in a process of its own, to be killed or to fail there. The child reports
// numbers through a pipe and leaves without running anything of the test's process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace bmgpu::store {

class Child {
 public:
  using Report = std::function<void(std::uint64_t)>;

  // `body` runs in the child; its return value is the exit status. REQUIRES: one thread.
  explicit Child(const std::function<int(const Report&)>& body);
  ~Child();  // kills it if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next number reported; absent once the child is gone and all were read.
  std::optional<std::uint64_t> next();
  void kill();
  // Waits for its end: the exit status, or minus the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int from_child_ = -1;
  std::optional<int> status_;
};

}  // namespace bmgpu::store
