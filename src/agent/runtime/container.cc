#include "agent/runtime/container.h"

#include <poll.h>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/subprocess.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

namespace {

constexpr std::chrono::seconds kDeleteDeadline{10};

// What an engine that was killed in the middle of a start left without noting it.
Result<void> destroy_unnoted(const v1::RuntimeFacts& facts, const std::string& id) {
  RunOptions options;
  options.deadline = kDeleteDeadline;
  const Result<std::string> done = run_ok({facts.oci_runtime(), "delete", "--force", id}, options);
  return done.ok() ? Result<void>() : done.error();
}

}  // namespace

Result<void> destroy_container(const v1::RuntimeFacts& facts, const Podman& podman,
                               const std::string& container, std::chrono::milliseconds deadline) {
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
      if (outcome.ok() && (state->status == "created" || state->status == "initialized")) {
        outcome = destroy_unnoted(facts, state->id);
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
