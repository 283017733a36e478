// Finds out what works on this machine. Nothing is assumed from versions or names.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace bmgpu::v1 {
class RuntimeFacts;
}

namespace bmgpu::agent {

// Runs a container that holds nothing but bm-init (no image, no network, no GPU) to its end and
// removes it. One at a time for each run folder. `dir` is a folder of the agent's own. Errors say
// what to look at.
Result<void> run_canary(const v1::RuntimeFacts& facts, const std::string& dir,
                        std::chrono::milliseconds deadline);

// Removes the containers of canaries that nobody runs any more: a frozen engine makes one when
// nobody waits for it, and an agent may have been killed. Best effort; nothing while one runs.
void remove_stale_canaries(const v1::RuntimeFacts& facts);

// Fills podman, its version, the first OCI runtime with which a canary runs, cgroup version, limits
// and network. REQUIRES: root, run_dir, image_stores and init_path are set. Takes seconds.
Result<void> probe_runtime(v1::RuntimeFacts& facts, const std::string& podman,
                           const std::string& oci_runtime, const std::string& nat_subnet,
                           const std::string& dir);

// Formats, mounts and removes a small scratch file.
Result<void> probe_scratch(const std::string& dir);

}  // namespace bmgpu::agent
