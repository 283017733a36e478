#include "sim/cluster.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "core/placement/filter.h"

namespace bmgpu::sim {

std::int64_t Node::gpu_thousandths() const {
  return std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0});
}

std::int32_t Node::whole_gpus() const {
  return static_cast<std::int32_t>(std::count(gpus.begin(), gpus.end(), 1000));
}

core::NodeShape Node::shape() const { return core::NodeShape{model, cpu_millis, memory_mib, gpus}; }

std::size_t class_of(const Request& request) {
  return request.is_share() ? 0 : static_cast<std::size_t>(request.gpus);
}

bool fits(const Node& node, const Request& request) {
  return core::can_take(node.shape(), request);
}

std::size_t tightest_device(const Node& node, const Request& request) {
  std::size_t best = node.gpus.size();
  for (std::size_t device = 0; device < node.gpus.size(); ++device) {
    const std::int32_t left = node.gpus[device];
    if (left >= request.thousandths && (best == node.gpus.size() || left < node.gpus[best])) {
      best = device;
    }
  }
  check(best < node.gpus.size(), "cluster: no device fits");
  return best;
}

void take(Node& node, const Request& request, std::size_t device) {
  check(fits(node, request), "cluster: the request does not fit");
  node.cpu_millis -= request.cpu_millis;
  node.memory_mib -= request.memory_mib;
  ++node.requests;
  if (request.gpus == 0) {
    return;
  }
  const std::size_t kind = class_of(request);
  if (node.affinity.size() <= kind) {
    node.affinity.resize(kind + 1);
  }
  ++node.affinity[kind];
  if (request.is_share()) {
    check(node.gpus[device] >= request.thousandths, "cluster: the device is too full");
    node.gpus[device] -= request.thousandths;
    return;
  }
  std::int32_t wanted = request.gpus;
  for (std::int32_t& left : node.gpus) {
    if (wanted > 0 && left == 1000) {
      left = 0;
      --wanted;
    }
  }
}

}  // namespace bmgpu::sim
