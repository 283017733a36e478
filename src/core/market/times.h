// Times in reasons: UTC, to the second.
#pragma once

#include <string>

#include "base/time.h"

namespace bmgpu::core {

// "2026-11-30T18:05:09Z", rounded down; bare milliseconds outside the years 1970 to 9999.
std::string utc_text(Instant at);

}  // namespace bmgpu::core
