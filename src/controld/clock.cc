#include "controld/clock.h"

#include <ctime>

#include "base/check.h"

namespace bmgpu::controld {
namespace {

timespec read(clockid_t clock) {
  timespec now{};
  check(clock_gettime(clock, &now) == 0, "clock_gettime failed");
  return now;
}

}  // namespace

Instant wall_now() {
  const timespec now = read(CLOCK_REALTIME);
  return Instant(std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

BootTime boot_now() {
  const timespec now = read(CLOCK_BOOTTIME);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace bmgpu::controld
