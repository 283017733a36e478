#include "core/placement/filter.h"

namespace bmgpu::core {

bool can_take(const NodeShape& node, const RequestShape& request) {
  if (request.cpu_millis > node.cpu_millis || request.memory_mib > node.memory_mib) {
    return false;
  }
  if (request.gpus == 0) {
    return true;
  }
  if (!request.takes_model(node.model)) {
    return false;
  }
  std::int32_t enough = 0;
  for (const std::int32_t left : node.gpus) {
    enough += left >= request.thousandths ? 1 : 0;
  }
  return enough >= request.gpus;
}

}  // namespace bmgpu::core
