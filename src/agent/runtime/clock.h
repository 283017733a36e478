// The two clocks of a shim. Deadlines are kept in CLOCK_BOOTTIME, which no one can set and which
// counts through a suspend; the wall clock is read only to convert an order's end into it.
#pragma once

#include <cstdint>

namespace bmgpu::agent {

std::int64_t boot_now_ns();
std::int64_t wall_now_ms();

}  // namespace bmgpu::agent
