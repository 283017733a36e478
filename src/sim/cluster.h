// Nodes with GPUs and what is left of them: the state that placement policies of the simulator see.
// Values only; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/placement/shape.h"

namespace bmgpu::sim {

using Request = core::RequestShape;

struct Node {
  std::string name;
  std::int32_t model = 0;
  std::int64_t cpu_millis = 0;         // left
  std::int64_t memory_mib = 0;         // left
  std::vector<std::int32_t> gpus;      // left of each device, in thousandths
  std::vector<std::int32_t> affinity;  // placed requests for GPUs by class_of()
  std::int64_t requests = 0;           // placed, those without GPU included

  std::int64_t gpu_thousandths() const;  // left, all devices together
  std::int32_t whole_gpus() const;       // devices that nobody uses
  core::NodeShape shape() const;         // until the node changes
};

// GpuClustering's class of a request: 0 = a share of a GPU, else the number of GPUs.
std::size_t class_of(const Request& request);

bool fits(const Node& node, const Request& request);

// The device that leaves the least behind, the first of equals. REQUIRES: fits, gpus is 1.
std::size_t tightest_device(const Node& node, const Request& request);

// Puts the request on the node: a share of a GPU on `device`, whole GPUs on free ones in order of
// devices. REQUIRES: fits(node, request).
void take(Node& node, const Request& request, std::size_t device);

}  // namespace bmgpu::sim
