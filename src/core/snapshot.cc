#include <utility>

#include "core/core.h"

namespace bmgpu::core {
namespace {

NodeRegistered registered(const NodeRecord& node, bool unnamed_too) {
  NodeRegistered event{node.id, node.owner,  node.site,       node.capacity,
                       {},      node.driver, node.owner_floor};
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.named || unnamed_too) {
      event.gpus.push_back(RegisteredGpu{gpu.id, gpu.gpu_class, gpu.uuid});
    }
  }
  return event;
}

void add_node(const NodeRecord& node, std::vector<Event>& events) {
  events.push_back(registered(node, true));
  if (std::ssize(node.gpus) != node.gpus_named) {
    events.push_back(registered(node, false));  // the others become unnamed
  }
  if (node.ready) {
    events.push_back(NodeReadyChanged{node.id, true});
  }
  if (node.listing_since != Instant()) {
    events.push_back(NodeListingChanged{node.id, node.listing, node.listing_since});
  }
  if (node.left_supply) {
    events.push_back(NodeLeftSupply{node.id});
  }
  if (node.lost) {
    events.push_back(NodeLost{node.id, node.last_acknowledged});
  }
}

// After the leases, which need their GPUs free to be granted.
void add_gpu_states(const NodeRecord& node, std::vector<Event>& events) {
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.state == GpuState::Sanitizing || (gpu.named && gpu.state == GpuState::Failed)) {
      events.push_back(GpuStateChanged{gpu.id, gpu.state});
    }
  }
}

PricesMoved prices(const State& state) {
  PricesMoved moved{state.last_price_tick, {}};
  for (const auto& [key, pool] : state.pools) {
    moved.prices.push_back(PoolPrice{key.gpu_class, key.site, pool.last_price});
  }
  return moved;
}

}  // namespace

std::vector<Event> snapshot(const State& state) {
  const CountersSet counters{state.next_id, state.last_stamp, state.review_due, state.open_slot};
  std::vector<Event> events;
  events.push_back(counters);  // the clock first: leases take their places in the book by it
  if (!state.policy.version.is_none()) {
    events.push_back(PolicySet{state.policy});
  }
  for (const auto& [id, record] : state.classes) {
    events.push_back(ClassDefined{id, record.spec});
  }
  events.insert(events.end(), state.closed_slots.begin(), state.closed_slots.end());
  for (const auto& [id, node] : state.nodes) {
    add_node(node, events);
  }
  for (const auto& [key, curve] : state.curves) {
    events.push_back(curve);
  }
  for (const auto& [id, lease] : state.leases) {
    events.push_back(LeaseGranted{lease});
  }
  for (const auto& [id, node] : state.nodes) {
    add_gpu_states(node, events);
  }
  for (const auto& [id, order] : state.waiting) {
    events.push_back(OrderQueued{order});
  }
  for (const auto& [id, quote] : state.quotes) {
    events.push_back(QuoteIssued{quote});
  }
  events.push_back(prices(state));
  events.push_back(counters);  // what is due for review is known only now
  return events;
}

}  // namespace bmgpu::core
