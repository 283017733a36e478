// The filter pass: whether a node can take a request at all.
#pragma once

#include "core/placement/shape.h"

namespace bmgpu::core {

// CPU and memory suffice, the model will do, and enough GPUs have the thousandths left.
bool can_take(const NodeShape& node, const RequestShape& request);

}  // namespace bmgpu::core
