// Names of an attempt on a node.
#pragma once

#include <compare>
#include <cstdint>

#include "base/ids.h"

namespace bmgpu::agent_core {

// One start of one rank of a lease. Unique within a market for ever.
struct AttemptKey {
  LeaseId lease;
  std::uint32_t rank = 0;
  AttemptNumber attempt;
  friend constexpr auto operator<=>(const AttemptKey&, const AttemptKey&) = default;
};

}  // namespace bmgpu::agent_core
