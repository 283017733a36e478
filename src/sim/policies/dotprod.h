// DotProd: the node whose free resources, as a vector, have the least product with the request's.
// int(100 · (1 − (c·cpu + g·gpu) / 2)), CPU in units of 128 cores, GPU of 8 devices.
#pragma once

#include "sim/policies/policy.h"

namespace bmgpu::sim {

class DotProdPolicy : public Policy {
 public:
  std::int32_t score(const Node& node, const Request& request) const override;
};

}  // namespace bmgpu::sim
