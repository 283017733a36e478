// DrainNode, ResumeNode, SetNodeReady: whether a node may be placed on.
#include "core/handlers.h"

namespace bmgpu::core {
namespace {

Decision no_such_node() { return refused(ReasonCode::NoSuchObject, "there is no such node"); }

Decision set_listing(const State& state, Instant now, NodeId id, NodeListing listing) {
  const auto it = state.nodes.find(id);
  if (it == state.nodes.end()) {
    return no_such_node();
  }
  return it->second.listing == listing ? done() : done(NodeListingChanged{id, listing, now});
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const DrainNode& command) {
  return set_listing(state, stamp.now, command.node, NodeListing::Draining);
}

Decision handle(const State& state, const Stamp& stamp, const ResumeNode& command) {
  return set_listing(state, stamp.now, command.node, NodeListing::Offered);
}

Decision handle(const State& state, const Stamp&, const SetNodeReady& command) {
  const auto it = state.nodes.find(command.node);
  if (it == state.nodes.end()) {
    return no_such_node();
  }
  const NodeRecord& node = it->second;
  const bool is_so = node.ready == command.ready && !(command.ready && node.lost);
  return is_so ? done() : done(NodeReadyChanged{command.node, command.ready});
}

}  // namespace bmgpu::core
