// Making a job's container ready and taking everything of it away again: the slow half of a shim.
// Nothing here decides; nothing here runs a process of the job.
#pragma once

#include <optional>
#include <string>

#include "agent/runtime/attempt_dir.h"
#include "agent/runtime/job_container.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/timeline.h"
#include "agent_core/shim_state.h"
#include "base/result.h"

namespace bmgpu::agent {

// The name of an order's container.
std::string container_of(const v1::ShimOrder& order);

// The container of an order. Pure.
ContainerSpec container_spec(const v1::ShimOrder& order, const AttemptDir& dir,
                             const ImageConfig& image);

// Image, scratch with the working directory, network and container, as much as possible at once;
// then starts the container, whose bm-init waits at the gate. Ends early once `shared.cancel` is
// true. The gate must listen before. Empty: it runs; bm-init comes to the gate.
std::optional<agent_core::ShimFailed> start_job(const v1::ShimOrder& order, const AttemptDir& dir,
                                                Preparation& shared, const OnProgress& on_progress,
                                                Timeline& timeline);

// Kills and removes the container, then network, scratch and gate. Goes on after a failure and
// returns the first one. What is missing is fine.
Result<void> remove_job(const v1::ShimOrder& order, const AttemptDir& dir);

}  // namespace bmgpu::agent
