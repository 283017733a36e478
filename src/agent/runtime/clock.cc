#include "agent/runtime/clock.h"

#include <ctime>

namespace bmgpu::agent {

std::int64_t boot_now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace bmgpu::agent
