// DeclareNodeLost, ReportGpu: what happens to leases when hardware goes away, and how a GPU comes
// back.
#include <algorithm>

#include "core/handlers.h"
#include "core/lease/lease_events.h"

namespace bmgpu::core {
namespace {

const GpuRecord* find_gpu(const State& state, NodeId node, const std::string& uuid) {
  const auto it = state.nodes.find(node);
  if (it == state.nodes.end()) {
    return nullptr;
  }
  const auto& gpus = it->second.gpus;
  const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                [&](const GpuRecord& record) { return record.uuid == uuid; });
  return gpu != gpus.end() && gpu->named ? &*gpu : nullptr;
}

Decision fail_gpu(const State& state, Instant now, const GpuRecord& gpu) {
  if (gpu.state == GpuState::Failed) {
    return done();
  }
  Decision decision = done(GpuStateChanged{gpu.id, GpuState::Failed});
  if (!gpu.lease.is_none()) {
    const Lease& lease = state.leases.at(gpu.lease);
    if (lease.state == LeaseState::Held) {
      decision.events.push_back(end_lease(lease, EndReason::GpuLost, std::min(now, lease.end),
                                          std::nullopt, "GPU " + gpu.uuid + " failed"));
    } else if (lease.state != LeaseState::Ending) {
      decision.events.push_back(LeaseEnding{lease.id, EndReason::GpuLost, std::min(now, lease.end),
                                            "GPU " + gpu.uuid + " failed", std::nullopt});
    }
  }
  return decision;
}

Instant metered_until(const Lease& lease, Instant last_acknowledged) {
  Instant latest = std::min(last_acknowledged, lease.end);
  if (lease.ending_since) {
    latest = std::min(latest, *lease.ending_since);
  }
  return std::max(latest, lease.running_since.value_or(lease.start));
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const DeclareNodeLost& command) {
  const auto it = state.nodes.find(command.node);
  if (it == state.nodes.end()) {
    return refused(ReasonCode::NoSuchObject, "there is no such node");
  }
  const NodeRecord& node = it->second;
  if (node.lost) {
    return done();
  }
  const Instant seen = std::min(command.last_acknowledged, stamp.now);
  Decision decision = done(NodeLost{node.id, seen});
  for (const LeaseId id : node.leases) {
    const Lease& lease = state.leases.at(id);
    const std::string detail =
        lease.ending_detail.empty() ? "its node does not answer" : lease.ending_detail;
    decision.events.push_back(end_lease(lease, lease.ending.value_or(EndReason::NodeLost),
                                        metered_until(lease, seen), lease.exit_code, detail));
  }
  return decision;
}

Decision handle(const State& state, const Stamp& stamp, const ReportGpu& command) {
  const GpuRecord* gpu = find_gpu(state, command.node, command.uuid);
  if (gpu == nullptr) {
    return refused(ReasonCode::NoSuchObject, "the node has no such GPU");
  }
  if (!command.ok) {
    return fail_gpu(state, stamp.now, *gpu);
  }
  if (!gpu->lease.is_none()) {
    return done();
  }
  Decision decision = done();
  const bool to_sanitise =
      gpu->state == GpuState::Failed || (gpu->state == GpuState::Free && !command.clean);
  if (to_sanitise) {
    decision.events.push_back(GpuStateChanged{gpu->id, GpuState::Sanitizing});
  }
  if (command.clean && gpu->state != GpuState::Free) {
    decision.events.push_back(GpuStateChanged{gpu->id, GpuState::Free});
  }
  return decision;
}

}  // namespace bmgpu::core
