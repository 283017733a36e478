// When the steps of a start were done, for shim.log and the benchmark. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace bmgpu::agent {

class Timeline {
 public:
  Timeline();
  void mark(const char* step);
  // "image=3.1 scratch=8.0 …": milliseconds since the timeline began.
  std::string text() const;

 private:
  const std::int64_t begin_ns_;
  mutable std::mutex mutex_;
  std::vector<std::pair<const char*, std::int64_t>> marks_;
};

}  // namespace bmgpu::agent
