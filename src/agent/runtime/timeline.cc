#include "agent/runtime/timeline.h"

#include "agent/runtime/clock.h"

namespace bmgpu::agent {

Timeline::Timeline() : begin_ns_(boot_now_ns()) {}

void Timeline::mark(const char* step) {
  const std::lock_guard lock(mutex_);
  marks_.emplace_back(step, boot_now_ns() - begin_ns_);
}

std::string Timeline::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [step, after_ns] : marks_) {
    const std::int64_t tenths = after_ns / 100'000;
    out += (out.empty() ? "" : " ") + std::string(step) + "=" + std::to_string(tenths / 10) + "." +
           std::to_string(tenths % 10);
  }
  return out;
}

}  // namespace bmgpu::agent
