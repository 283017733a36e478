// GpuClustering: requests for as many GPUs stay together, on nodes that are fuller. 75, 50, 25 or 0
// for a node with only this class, with this among others, empty, with others only; plus
// 25 · (8000 − g) / 8000 in whole numbers, g = thousandths left.
#pragma once

#include "sim/policies/policy.h"

namespace bmgpu::sim {

class GpuClusteringPolicy : public Policy {
 public:
  std::int32_t score(const Node& node, const Request& request) const override;
};

}  // namespace bmgpu::sim
