// The clock of deadlines: CLOCK_BOOTTIME, which no one can set and which counts through a suspend.
// The wall clock (host/facts.h) is read only to convert an order's end into it.
#pragma once

#include <cstdint>

namespace bmgpu::agent {

std::int64_t boot_now_ns();

}  // namespace bmgpu::agent
