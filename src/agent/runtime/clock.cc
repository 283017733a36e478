#include "agent/runtime/clock.h"

#include <ctime>

namespace bmgpu::agent {

std::int64_t boot_now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::int64_t wall_now_ms() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1'000'000;
}

}  // namespace bmgpu::agent
