#include "sim/policies/gpupacking.h"

#include <algorithm>

namespace bmgpu::sim {

std::int32_t GpuPackingPolicy::score(const Node& node, const Request& request) const {
  if (request.gpus == 0) {
    return 0;
  }
  const std::int32_t whole = node.whole_gpus();
  if (whole == static_cast<std::int32_t>(node.gpus.size())) {
    return std::max(33 - whole, whole);
  }
  std::vector<std::int32_t> left = node.gpus;
  std::sort(left.begin(), left.end());
  std::int32_t wanted = request.gpus;
  std::int32_t opened = 0;
  std::int32_t percent = 0;
  for (const std::int32_t device : left) {
    if (wanted > 0 && device >= request.thousandths) {
      --wanted;
      opened += device == 1000 ? 1 : 0;
      percent += device / 10;
    }
  }
  return opened > 0 ? std::max(50 - opened, 33) : std::max(100 - percent / 10, 50);
}

}  // namespace bmgpu::sim
