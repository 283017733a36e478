// RemoveNode, RenewNode: a node leaves the market, or comes back as if for the first time.
#include "core/handlers.h"

namespace bmgpu::core {
namespace {

std::optional<Reason> why_not(const State& state, NodeId id) {
  const auto it = state.nodes.find(id);
  if (it == state.nodes.end()) {
    return Reason{ReasonCode::NoSuchObject, "there is no such node"};
  }
  if (!it->second.leases.empty()) {
    return Reason{ReasonCode::NodeInUse,
                  "lease-" + std::to_string(it->second.leases.begin()->value()) +
                      " lives on it: drain the node, wait until its leases have ended, then run "
                      "bm-agent leave there"};
  }
  return std::nullopt;
}

}  // namespace

Decision handle(const State& state, const Stamp&, const RemoveNode& command) {
  if (auto reason = why_not(state, command.node)) {
    return refused(std::move(*reason));
  }
  const NodeRecord& node = state.nodes.at(command.node);
  if (!node.stays.empty()) {
    return refused(ReasonCode::NodeInUse,
                   "lease-" + std::to_string(node.stays.front().lease.value()) +
                       " is booked on it for later: it moves as soon as another node has room, or "
                       "ends unpaid; bmcli stop cancels it");
  }
  if (node.ready) {
    return refused(ReasonCode::NodeInUse,
                   "the node is ready to be offered: drain it, then run bm-agent leave there");
  }
  return done(NodeRemoved{command.node});
}

Decision handle(const State& state, const Stamp& stamp, const RenewNode& command) {
  if (auto reason = why_not(state, command.node)) {
    return refused(std::move(*reason));
  }
  const NodeRecord& node = state.nodes.at(command.node);
  Decision decision = done();
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.state == GpuState::Free) {
      decision.events.push_back(GpuStateChanged{gpu.id, GpuState::Sanitizing});
    }
  }
  if (node.listing != NodeListing::Offered) {
    decision.events.push_back(NodeListingChanged{node.id, NodeListing::Offered, stamp.now});
  }
  return decision;
}

}  // namespace bmgpu::core
