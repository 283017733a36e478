#include "controld/attempts.h"

#include <algorithm>

#include "bmgpu/v1/agent.pb.h"
#include "controld/sessions.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::int64_t kPidsPerGpu = 4096;

core::Form form_of(const std::string& text) {
  return text == "PCIe" ? core::Form::Pcie : text == "SXM" ? core::Form::Sxm : core::Form::Unknown;
}

core::EndReason reason_of(v1::EndReason reason) {
  switch (reason) {
    case v1::END_REASON_TIME_UP:
      return core::EndReason::TimeUp;
    case v1::END_REASON_STOPPED:
      return core::EndReason::Stopped;
    case v1::END_REASON_START_FAILED:
      return core::EndReason::StartFailed;
    case v1::END_REASON_DEVICE_CHECK_FAILED:
      return core::EndReason::DeviceCheckFailed;
    case v1::END_REASON_GPU_LOST:
      return core::EndReason::GpuLost;
    case v1::END_REASON_OUT_OF_MEMORY:
      return core::EndReason::OutOfMemory;
    default:
      return core::EndReason::JobExited;
  }
}

}  // namespace

core::RegisterNode register_command(const NodeEntry& node, const v1::Inventory& inventory) {
  core::RegisterNode command;
  command.node = node.id;
  command.owner = node.owner;
  command.site = node.site;
  command.capacity = {inventory.cpu_millis(), inventory.memory_mib(), inventory.scratch_mib()};
  command.driver = inventory.simulated_driver() ? core::Driver::Simulated : core::Driver::Real;
  for (const v1::InventoryGpu& gpu : inventory.gpus()) {
    command.gpus.push_back({gpu.uuid(), {gpu.model(), gpu.memory_mib(), form_of(gpu.form())}});
  }
  return command;
}

v1::AttemptSpec attempt_spec(const core::DesiredAttempt& attempt, const v1::JobSpec& job) {
  v1::AttemptSpec spec;
  spec.set_lease(wire::to_text(attempt.lease));
  spec.set_rank(attempt.rank);
  spec.set_attempt(attempt.token.attempt.value());
  spec.set_incarnation(attempt.token.incarnation.value());
  for (const std::string& uuid : attempt.gpu_uuids) {
    spec.add_gpu_uuids(uuid);
  }
  spec.set_cpu_millis(attempt.cpu_millis);
  spec.set_memory_mib(attempt.memory_mib);
  spec.set_scratch_mib(attempt.scratch_mib);
  spec.set_pids(kPidsPerGpu * static_cast<std::int64_t>(attempt.gpu_uuids.size()));
  spec.set_lease_end_unix_ms(attempt.lease_end.unix_ms());
  *spec.mutable_job() = job;
  spec.set_restart(attempt.restart == core::RestartPolicy::Never ? v1::RESTART_POLICY_NEVER
                                                                 : v1::RESTART_POLICY_HOST_FAILURE);
  spec.set_account(wire::to_text(attempt.tenant));
  spec.set_stop(attempt.stop);
  return spec;
}

GpuReading reading_of(const v1::GpuCondition& condition) {
  GpuReading reading;
  reading.ok = condition.ok();
  reading.fault = condition.fault();
  reading.health = condition.health();
  if (condition.has_temperature_c()) {
    reading.temperature_c = condition.temperature_c();
  }
  if (condition.has_power_mw()) {
    reading.power_mw = condition.power_mw();
  }
  return reading;
}

bool holds_rank(const core::State& state, LeaseId lease, std::uint32_t rank, NodeId node) {
  const auto found = state.leases.find(lease);
  if (found == state.leases.end() || found->second.allocations.empty()) {
    return false;
  }
  const std::vector<core::RankPlacement>& ranks = found->second.allocations.back().ranks;
  return rank < ranks.size() && ranks[rank].node == node;
}

void report_attempt(Turn& turn, LeaseId lease, const v1::AttemptStatus& status,
                    Duration clock_offset) {
  const FencingToken token{Incarnation(status.incarnation()), AttemptNumber(status.attempt())};
  const auto ours = [&](std::int64_t unix_ms) {
    return std::min(Instant(unix_ms) - clock_offset, turn.now());
  };
  if (status.running_since_unix_ms() != 0) {
    turn.execute(core::ReportAttemptRunning{lease, status.rank(), token,
                                            ours(status.running_since_unix_ms())});
  }
  if (status.phase() != v1::ATTEMPT_PHASE_ENDED) {
    return;
  }
  core::ReportAttemptEnded ended{lease,
                                 status.rank(),
                                 token,
                                 reason_of(status.end_reason()),
                                 ours(status.ended_unix_ms()),
                                 std::nullopt,
                                 status.detail()};
  if (status.has_exit_code()) {
    ended.exit_code = status.exit_code();
  }
  turn.execute(ended);
}

void report_gpu(Turn& turn, NodeId node, const std::string& uuid, bool ok,
                std::optional<bool> clean) {
  const core::State& state = turn.state();
  const auto gpu = state.gpu_of_uuid.find(uuid);
  if (gpu == state.gpu_of_uuid.end() || state.node_of_gpu.at(gpu->second) != node) {
    return;
  }
  const std::vector<core::GpuRecord>& gpus = state.nodes.at(node).gpus;
  const auto record = std::find_if(gpus.begin(), gpus.end(),
                                   [&](const core::GpuRecord& r) { return r.id == gpu->second; });
  check(record != gpus.end(), "attempts: a node lacks a GPU of its own");
  const bool fails = !ok && record->state != core::GpuState::Failed;
  const bool cleaned =
      ok && clean.value_or(false) &&
      (record->state == core::GpuState::Sanitizing || record->state == core::GpuState::Failed);
  if (fails || cleaned) {
    turn.execute(core::ReportGpu{node, uuid, ok, clean.value_or(false)});
  }
}

}  // namespace bmgpu::controld
