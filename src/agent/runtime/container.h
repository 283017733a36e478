// What agent and shim both do with a container of ours.
#pragma once

#include <chrono>
#include <string>

#include "agent/runtime/podman.h"
#include "base/result.h"

namespace bmgpu::v1 {
class RuntimeFacts;
}

namespace bmgpu::agent {

// Kills every process of the container by its cgroup files and removes it. The engine may take a
// moment to notice that a container died; until the deadline it is asked again. Of one that it does
// not know to have been started, the OCI runtime removes what there may be. Missing is fine.
Result<void> destroy_container(const v1::RuntimeFacts& facts, const Podman& podman,
                               const std::string& container, std::chrono::milliseconds deadline);

}  // namespace bmgpu::agent
