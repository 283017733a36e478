// What agent and shim both do with a container of ours.
#pragma once

#include <chrono>
#include <string>

#include "agent/runtime/podman.h"
#include "base/result.h"

namespace bmgpu::agent {

// Kills every process of the container by its cgroup files and removes it. The engine may take a
// moment to notice that a container died; until the deadline it is asked again. Missing is fine.
Result<void> destroy_container(const Podman& podman, const std::string& container,
                               std::chrono::milliseconds deadline);

}  // namespace bmgpu::agent
