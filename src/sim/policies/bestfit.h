// BestFit: the node with the least left afterwards, CPU and GPU weighing the same:
// int(100 · (1 − (c / 128 cores + g / 8 GPUs) / 2)). As published the scores of the nodes that fit
// are then stretched to 0..100; that keeps their order and joins none, so it is left out here.
#pragma once

#include "sim/policies/policy.h"

namespace bmgpu::sim {

class BestFitPolicy : public Policy {
 public:
  std::int32_t score(const Node& node, const Request& request) const override;
};

}  // namespace bmgpu::sim
