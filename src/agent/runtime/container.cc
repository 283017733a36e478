#include "agent/runtime/container.h"

#include <poll.h>

#include "agent/runtime/cgroup.h"

namespace bmgpu::agent {

Result<void> destroy_container(const Podman& podman, const std::string& container,
                               std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + deadline;
  int pause_ms = 5;
  while (true) {
    Result<ContainerState> state = podman.inspect(container);
    if (!state.ok() && state.error().code == ErrorCode::NotFound) {
      return {};
    }
    Result<void> outcome;
    if (!state.ok()) {
      outcome = state.error();
    } else {
      if (state->cgroup_path.size() > 1) {
        outcome = JobCgroup(cgroup_trees(), state->cgroup_path).kill(deadline);
      }
      if (outcome.ok()) {
        outcome = podman.remove(container);
      }
      if (outcome.ok()) {
        return {};
      }
    }
    if (Clock::now() >= end) {
      return outcome;
    }
    ::poll(nullptr, 0, pause_ms);
    pause_ms = pause_ms < 80 ? pause_ms * 2 : 80;
  }
}

}  // namespace bmgpu::agent
