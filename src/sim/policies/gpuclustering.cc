#include "sim/policies/gpuclustering.h"

#include <algorithm>

namespace bmgpu::sim {

std::int32_t GpuClusteringPolicy::score(const Node& node, const Request& request) const {
  if (request.gpus == 0) {
    return 0;
  }
  const auto is_there = [](std::int32_t placed) { return placed > 0; };
  const auto classes = std::count_if(node.affinity.begin(), node.affinity.end(), is_there);
  const std::size_t own = class_of(request);
  std::int64_t base = classes == 0 ? 25 : 0;
  if (own < node.affinity.size() && node.affinity[own] > 0) {
    base = classes == 1 ? 75 : 50;
  }
  const std::int64_t used = std::max<std::int64_t>(0, 8'000 - node.gpu_thousandths());
  return static_cast<std::int32_t>(base + 25 * used / 8'000);
}

}  // namespace bmgpu::sim
