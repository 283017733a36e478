// What `bm-agent doctor` says of GPUs, device files and CDI.
#pragma once

#include <string>
#include <vector>

#include "agent/gpu/gpu.h"
#include "agent/host/doctor.h"

namespace bmgpu::agent {

struct GpuDoctorOptions {
  std::string cdi_dir;
  std::string cdi_kind;    // empty: not known before the node has joined, and not looked for
  std::string device_dir;  // of simulated GPUs; empty for real ones
};

// Judges a view (take it with GpuProbe::refresh) and looks at the files; changes nothing.
std::vector<DoctorCheck> doctor_gpus(const GpuView& view, const GpuDoctorOptions& options);

}  // namespace bmgpu::agent
