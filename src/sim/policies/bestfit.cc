#include "sim/policies/bestfit.h"

#include <algorithm>

namespace bmgpu::sim {

std::int32_t BestFitPolicy::score(const Node& node, const Request& request) const {
  const auto cpu = static_cast<double>(node.cpu_millis - request.cpu_millis) / 128'000;
  const auto gpu = static_cast<double>(node.gpu_thousandths() - request.gpu_thousandths()) / 8'000;
  return std::max(0, static_cast<std::int32_t>(100 * (1 - (0.5 * cpu + 0.5 * gpu))));
}

}  // namespace bmgpu::sim
