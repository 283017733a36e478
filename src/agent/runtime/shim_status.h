// Between the state machine's words and the attempt's files. Pure.
#pragma once

#include <cstdint>

#include "agent_core/shim_state.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

v1::EndReason end_reason(agent_core::EndCause cause);
agent_core::EndCause end_cause(v1::EndReason reason);

// Writes phase, end and device count of `state` into `status`; times and progress are the shim's.
void put_state(const agent_core::ShimState& state, v1::AttemptStatus& status);

// What is wanted, with the lease's end converted to CLOCK_BOOTTIME. The first conversion of a value
// is kept in `memory`: a wall clock that is set later, or another shim, does not move the end.
agent_core::ShimWanted wanted(const v1::ShimOrder& order, const v1::ShimWant& want,
                              std::int64_t boot_now_ns, std::int64_t wall_now_ms,
                              v1::ShimMemory& memory);

}  // namespace bmgpu::agent
