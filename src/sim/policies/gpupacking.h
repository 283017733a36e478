// GpuPacking: devices in use first, then free devices of nodes in use, then empty nodes.
// In use: 100 − (percent left of the devices) / 10, at least 50. Free devices of a node in use:
// 50 − their number, at least 33. Empty node: 33 − its devices, at least its devices. CPU only: 0.
#pragma once

#include "sim/policies/policy.h"

namespace bmgpu::sim {

class GpuPackingPolicy : public Policy {
 public:
  std::int32_t score(const Node& node, const Request& request) const override;
};

}  // namespace bmgpu::sim
