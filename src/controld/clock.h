// The two clocks of bmd, in one place. Wall time stamps commands; boot time measures silence,
// counts suspended time and is never set back.
#pragma once

#include <chrono>

#include "base/time.h"

namespace bmgpu::controld {

using BootTime = std::chrono::nanoseconds;  // CLOCK_BOOTTIME

// Thread-safe.
Instant wall_now();
BootTime boot_now();

}  // namespace bmgpu::controld
