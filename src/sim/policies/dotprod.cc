#include "sim/policies/dotprod.h"

#include <algorithm>

namespace bmgpu::sim {

std::int32_t DotProdPolicy::score(const Node& node, const Request& request) const {
  const auto part = [](std::int64_t amount, double whole) {
    return static_cast<double>(amount) / whole;
  };
  const double cpu = part(node.cpu_millis, 128'000) * part(request.cpu_millis, 128'000);
  const double gpu = part(node.gpu_thousandths(), 8'000) * part(request.gpu_thousandths(), 8'000);
  return std::max(0, static_cast<std::int32_t>(100 * (1 - (cpu + gpu) / 2)));
}

}  // namespace bmgpu::sim
