#include "agent/runtime/shim_status.h"

#include <algorithm>
#include <array>
#include <utility>

namespace bmgpu::agent {
namespace {

using agent_core::EndCause;
using agent_core::FreezeReason;
using agent_core::ShimPhase;

constexpr std::array<std::pair<EndCause, v1::EndReason>, 9> kReasons = {{
    {EndCause::None, v1::END_REASON_UNSPECIFIED},
    {EndCause::JobExited, v1::END_REASON_JOB_EXITED},
    {EndCause::Stopped, v1::END_REASON_STOPPED},
    {EndCause::TimeUp, v1::END_REASON_TIME_UP},
    {EndCause::StartFailed, v1::END_REASON_START_FAILED},
    {EndCause::DeviceCheckFailed, v1::END_REASON_DEVICE_CHECK_FAILED},
    {EndCause::GpuLost, v1::END_REASON_GPU_LOST},
    {EndCause::OutOfMemory, v1::END_REASON_OUT_OF_MEMORY},
    {EndCause::NodeRestarted, v1::END_REASON_NODE_LOST},
}};

v1::AttemptPhase phase_of(ShimPhase phase) {
  switch (phase) {
    case ShimPhase::Preparing:
      return v1::ATTEMPT_PHASE_PREPARING;
    case ShimPhase::Running:
      return v1::ATTEMPT_PHASE_RUNNING;
    case ShimPhase::Terminating:
    case ShimPhase::Killing:
    case ShimPhase::Removing:
      return v1::ATTEMPT_PHASE_ENDING;
    case ShimPhase::Ended:
      return v1::ATTEMPT_PHASE_ENDED;
  }
  return v1::ATTEMPT_PHASE_UNSPECIFIED;
}

}  // namespace

v1::EndReason end_reason(EndCause cause) {
  for (const auto& [one, reason] : kReasons) {
    if (one == cause) {
      return reason;
    }
  }
  return v1::END_REASON_UNSPECIFIED;
}

EndCause end_cause(v1::EndReason reason) {
  for (const auto& [cause, one] : kReasons) {
    if (one == reason) {
      return cause;
    }
  }
  return EndCause::Stopped;
}

void put_state(const agent_core::ShimState& state, v1::AttemptStatus& status) {
  status.set_phase(phase_of(state.phase));
  status.set_gpus_seen(state.gpus_seen);
  status.set_end_reason(end_reason(state.cause));
  status.set_detail(state.detail);
  if (state.exit_code) {
    status.set_exit_code(*state.exit_code);
  }
}

agent_core::ShimWanted wanted(const v1::ShimOrder& order, const v1::ShimWant& want,
                              std::int64_t boot_now_ns, std::int64_t wall_now_ms,
                              v1::ShimMemory& memory) {
  const std::int64_t end =
      want.lease_end_unix_ms() != 0 ? want.lease_end_unix_ms() : order.spec().lease_end_unix_ms();
  if (memory.lease_end_boottime_ns() == 0 || memory.lease_end_unix_ms() != end) {
    memory.set_lease_end_unix_ms(end);
    // Bounded both ways, so that no value of a file can overflow.
    constexpr std::int64_t kLatestMs = std::int64_t{1} << 50;
    constexpr std::int64_t kFarMs = std::int64_t{400} * 24 * 3600 * 1000;
    const std::int64_t left_ms =
        std::clamp(std::clamp<std::int64_t>(end, 0, kLatestMs) - wall_now_ms, -kFarMs, kFarMs);
    memory.set_lease_end_boottime_ns(std::max<std::int64_t>(1, boot_now_ns + left_ms * 1'000'000));
  }
  agent_core::ShimWanted out;
  out.lease_end_ns = memory.lease_end_boottime_ns();
  if (want.stop()) {
    out.stop = want.stop_reason() == v1::END_REASON_UNSPECIFIED ? EndCause::Stopped
                                                                : end_cause(want.stop_reason());
    out.stop_detail = want.stop_detail();
  }
  for (const int reason : want.freeze()) {
    out.freeze.insert(reason == v1::FREEZE_REASON_SNAPSHOT   ? FreezeReason::Snapshot
                      : reason == v1::FREEZE_REASON_OPERATOR ? FreezeReason::Operator
                                                             : FreezeReason::Fence);
  }
  return out;
}

}  // namespace bmgpu::agent
