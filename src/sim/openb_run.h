// One run of the published protocol: one trace, one policy, one seed.
#pragma once

#include <cstdint>

#include "sim/policies/policy.h"
#include "sim/workloads/openb_arrivals.h"

namespace bmgpu::sim {

// "At 100 % load": the mean over all arrivals at which the GPU thousandths asked for so far, as a
// share of the cluster's, round to 100 %. On a small trace none may: then it is the last one below.
struct OpenbOutcome {
  double allocated_percent = 0;  // of the cluster's GPUs, at 100 % load
  double cpu_only_placed = 0;    // pods without GPU that have been placed, at 100 % load
  double cpu_only_arrived = 0;   // the same, placed or not
};

// Places one pod after another, never moving or ending one. A pod fails for good if no node fits.
OpenbOutcome run_openb(const OpenbTrace& trace, const OpenbArrivals& arrivals, Policy& policy);

}  // namespace bmgpu::sim
