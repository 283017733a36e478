// From what was read of a GPU to whether it may be offered and how good it is. Pure.
#pragma once

#include <optional>
#include <string>

#include "agent/gpu/gpu.h"

namespace bmgpu::agent {

struct HealthInputs {
  GpuFault device = GpuFault::None;  // what the driver says of it as a whole
  std::string device_detail;
  GpuTelemetry telemetry;
  std::optional<std::uint64_t> fatal_xid;  // one that still counts
};

// Whether this XID means that the GPU needs a reset, a reboot or hands on it. Codes that blame the
// job (13, 31, 43, …), informational and unknown ones do not.
bool xid_is_fatal(std::uint64_t xid);

// Fills fault, detail, health and parts of `gpu`; leaves the rest alone. Quantities that are absent
// cost nothing, those that failed to be read halve their part.
void judge(const HealthInputs& inputs, GpuState& gpu);

}  // namespace bmgpu::agent
