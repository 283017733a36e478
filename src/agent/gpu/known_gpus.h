// The file of identities that were seen on this node, across restarts of agent and machine.
#pragma once

#include <string>
#include <vector>

#include "agent/gpu/gpu.h"
#include "base/result.h"

namespace bmgpu::agent {

// NotFound: there is no file yet. InvalidArgument: it is damaged.
Result<std::vector<GpuIdentity>> load_known_gpus(const std::string& file);
Result<void> save_known_gpus(const std::string& file, const std::vector<GpuIdentity>& gpus);

}  // namespace bmgpu::agent
