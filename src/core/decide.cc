#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/handlers.h"

namespace bmgpu::core {
namespace {

void add_node_of(const State& state, LeaseId id, std::vector<NodeId>& nodes) {
  for (const RankPlacement& rank : state.leases.at(id).allocations.back().ranks) {
    nodes.push_back(rank.node);
  }
}

// The nodes whose desired set an event changes. `state` is the one before the event.
void add_nodes(const State& state, const Event& event, std::vector<NodeId>& nodes) {
  if (const auto* granted = std::get_if<LeaseGranted>(&event)) {
    if (granted->lease.state == LeaseState::Booked) {
      return;
    }
    for (const RankPlacement& rank : granted->lease.allocations.back().ranks) {
      nodes.push_back(rank.node);
    }
  } else if (const auto* started = std::get_if<LeaseStarted>(&event)) {
    add_node_of(state, started->id, nodes);
  } else if (const auto* moved = std::get_if<LeaseMoved>(&event)) {  // it may start with it
    for (const RankPlacement& rank : moved->ranks) {
      nodes.push_back(rank.node);
    }
  } else if (const auto* given = std::get_if<JobGiven>(&event)) {
    add_node_of(state, given->id, nodes);
  } else if (const auto* extended = std::get_if<LeaseExtended>(&event)) {
    add_node_of(state, extended->id, nodes);
  } else if (const auto* ending = std::get_if<LeaseEnding>(&event)) {
    add_node_of(state, ending->id, nodes);
  } else if (const auto* ended = std::get_if<LeaseEnded>(&event)) {
    add_node_of(state, ended->id, nodes);
  } else if (const auto* registered = std::get_if<NodeRegistered>(&event)) {
    nodes.push_back(registered->node);
  }
}

std::vector<Request> requests_for(const State& state, const std::vector<Event>& events) {
  std::vector<NodeId> nodes;
  for (const Event& event : events) {
    add_nodes(state, event, nodes);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<Request> requests;
  requests.reserve(nodes.size());
  for (const NodeId node : nodes) {
    requests.emplace_back(SyncNode{node});
  }
  return requests;
}

}  // namespace

Decision done() { return Decision{{}, {}, Done{}}; }

Decision done(Event event) {
  Decision decision = done();
  decision.events.push_back(std::move(event));
  return decision;
}

Decision refused(Reason reason) { return Decision{{}, {}, Refused{std::move(reason)}}; }

Decision refused(ReasonCode code, std::string detail) {
  return refused(Reason{code, std::move(detail)});
}

Decision decide(const State& state, const Stamp& stamp, const Command& command) {
  const Stamp forward{std::max(stamp.now, state.last_stamp), stamp.incarnation};
  Decision decision =
      std::visit([&](const auto& kind) { return handle(state, forward, kind); }, command);
  decision.requests = requests_for(state, decision.events);
  return decision;
}

}  // namespace bmgpu::core
