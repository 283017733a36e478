// Whether a market without faults has come to rest. Naive on purpose: it looks at every node and
// order, and shares nothing with placement.
#pragma once

#include <optional>
#include <string>

#include "core/core.h"
#include "sim/checkers/containers.h"

namespace bmgpu::sim {

// What has not: a node that is not offered, a GPU that is neither free nor leased, a lease that is
// ending or late or that nothing runs for, an order that waits without a true reason. Absent: rest.
std::optional<std::string> unsettled(const core::State& state, const Containers& containers,
                                     Instant now);

}  // namespace bmgpu::sim
