// The podman API service of an agent: its command line, and starting it when nobody answers.
#pragma once

#include <chrono>
#include <memory>
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

// An engine of our own for one piece of work, beside the service: a process that ends with this
// object, or by itself 5 s after its last connection if we die first. For calls after which the
// service itself would never be the same: the archive calls leave one of its threads in the mount
// namespace of the job, and if that thread is its first one, it stays there and keeps the job's
// scratch space mounted until the service ends. (containers/podman 4.3, joinMountAndExec; the Go
// runtime parks a first thread instead of ending it.)
class OwnEngine {
 public:
  // Returns once it listens.
  static Result<std::unique_ptr<OwnEngine>> start(const v1::RuntimeFacts& facts,
                                                  std::chrono::milliseconds deadline);
  ~OwnEngine();  // waits until it is gone
  OwnEngine(const OwnEngine&) = delete;
  OwnEngine& operator=(const OwnEngine&) = delete;
  const std::string& socket() const { return socket_; }

 private:
  OwnEngine(std::string socket, int pid);
  const std::string socket_;
  const int pid_;
};

// The process that listens. Unavailable if none does.
Result<int> service_pid(const v1::RuntimeFacts& facts);

// Ends the service that listens, and waits until it is gone. None is fine.
Result<void> stop_service(const v1::RuntimeFacts& facts, std::chrono::milliseconds deadline);

}  // namespace bmgpu::agent
