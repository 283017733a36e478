// Core's events as words for traces.
#pragma once

#include <cstdint>

#include "core/events.h"

namespace bmgpu::sim {

const char* event_name(const core::Event& event);
// The number of the lease, order, node, GPU, quote or class that it is about; 0 = none.
std::uint64_t event_subject(const core::Event& event);

}  // namespace bmgpu::sim
