// A span of market time with both of its ends.
#pragma once

#include <compare>

#include "base/time.h"

namespace bmgpu {

// From `from` on and before `until`.
struct Interval {
  Instant from;
  Instant until;
  friend constexpr auto operator<=>(const Interval&, const Interval&) = default;
};

}  // namespace bmgpu
