// The podman API service of an agent: its command line, and starting it when nobody answers.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::v1 {
class RuntimeFacts;
}

namespace bmgpu::agent {

// The libpod socket of these facts.
std::string service_socket(const v1::RuntimeFacts& facts);
// Parent cgroup of our containers, "/bmgpu-<hash>", one per agent.
std::string cgroup_parent(const v1::RuntimeFacts& facts);
// podman with this agent's storage, run folder and OCI runtime; a subcommand follows.
std::vector<std::string> podman_command(const v1::RuntimeFacts& facts);

// Starts the service unless somebody listens. A file lock keeps agent and shims from starting two.
// Returns once it listens. One that listens and does not answer is left alone: whoever calls it
// sees the deadline, and the canary names it.
Result<void> ensure_service(const v1::RuntimeFacts& facts, std::chrono::milliseconds deadline);

// The process that listens. Unavailable if none does.
Result<int> service_pid(const v1::RuntimeFacts& facts);

// Ends the service that listens, and waits until it is gone. None is fine.
Result<void> stop_service(const v1::RuntimeFacts& facts, std::chrono::milliseconds deadline);

}  // namespace bmgpu::agent
