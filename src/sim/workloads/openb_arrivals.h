// The published protocol of FGD (USENIX ATC'23) over an openb trace: which pods arrive in which
// order for a seed, how ties between nodes break, and what "at 100 % load" means.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workloads/openb_trace.h"

namespace bmgpu::sim {

// Pods arrive until they have asked for this much of the cluster's GPUs, resampled if need be.
inline constexpr std::int64_t kArrivedPermille = 1300;

struct OpenbArrivals {
  std::vector<std::size_t> nodes;  // the trace's node at each rank; ties go to the smaller rank
  std::vector<std::size_t> pods;   // request of each pod, in order of arrival
};

// The whole list shuffled, then pods drawn from it with replacement up to the target. The same
// seed gives the same arrivals for every policy.
OpenbArrivals openb_arrivals(const OpenbTrace& trace, std::uint64_t seed);

// The most frequent requests of the original list that together are 95 % of its pods, by falling
// count, then in order of Request. Without memory, which FGD ignores.
std::vector<core::TypicalRequest> typical_requests(const OpenbTrace& trace);

}  // namespace bmgpu::sim
