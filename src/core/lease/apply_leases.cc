#include <algorithm>

#include "base/check.h"
#include "core/apply_parts.h"
#include "core/book/stays.h"
#include "core/indexes.h"

namespace bmgpu::core {
namespace {

// Changes a lease and its deadline.
template <typename Change>
void change_lease(State& state, LeaseId id, Change change) {
  Lease& lease = lease_at(state, id);
  if (const auto deadline = deadline_of(state, lease)) {
    state.deadlines.erase(*deadline);
  }
  change(lease);
  if (const auto deadline = deadline_of(state, lease)) {
    state.deadlines.insert(*deadline);
  }
}

GpuRecord& gpu_of(NodeRecord& node, const Item& item) {
  const auto it = std::find_if(node.gpus.begin(), node.gpus.end(),
                               [&](const GpuRecord& gpu) { return gpu.id == item.gpu; });
  check(it != node.gpus.end(), "apply: an item on another node");
  return *it;
}

bool is_owners_use(const State& state, const Lease& lease, const RankPlacement& rank) {
  return lease.tenant == state.nodes.at(rank.node).owner;
}

// Changes what a lease holds of a node while the node is off the lists that the change moves.
template <typename Change>
void change_held(State& state, const Lease& lease, const RankPlacement& rank, Change change) {
  NodeRecord& node = state.nodes.at(rank.node);
  const bool moves_supply = lease.tenant == node.owner;
  moves_supply ? unlist_node(state, node) : unlist_free_gpus(state, node);
  change(node);
  moves_supply ? list_node(state, node) : list_free_gpus(state, node);
}

void hold_rank(State& state, const Lease& lease, const RankPlacement& rank) {
  change_held(state, lease, rank, [&](NodeRecord& node) {
    for (const Item& item : rank.items) {
      GpuRecord& gpu = gpu_of(node, item);
      check(gpu.state == GpuState::Free, "apply: a GPU is leased that is not free");
      gpu.state = GpuState::Leased;
      gpu.lease = lease.id;
      gpu.owners_use = lease.tenant == node.owner;
    }
    node.used.cpu_millis += rank.cpu_millis;
    node.used.memory_mib += rank.memory_mib;
    node.used.scratch_mib += rank.scratch_mib;
    node.leases.insert(lease.id);
  });
}

void release_rank(State& state, const Lease& lease, const RankPlacement& rank) {
  change_held(state, lease, rank, [&](NodeRecord& node) {
    for (const Item& item : rank.items) {
      GpuRecord& gpu = gpu_of(node, item);
      check(gpu.lease == lease.id, "apply: another lease's GPU is released");
      gpu.lease = LeaseId();
      gpu.owners_use = false;
      if (gpu.state == GpuState::Leased) {
        gpu.state = GpuState::Sanitizing;
      }
    }
    node.used.cpu_millis -= rank.cpu_millis;
    node.used.memory_mib -= rank.memory_mib;
    node.used.scratch_mib -= rank.scratch_mib;
    node.leases.erase(lease.id);
  });
}

void release_items(State& state, const Lease& lease) {
  PoolRecord& pool = state.pools.at(PoolKey{lease.gpu_class, lease.site});
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    release_rank(state, lease, rank);
    pool.gpus_leased -= std::ssize(rank.items);
    pool.demand_leased -= is_owners_use(state, lease, rank) ? 0 : std::ssize(rank.items);
  }
}

}  // namespace

Lease& lease_at(State& state, LeaseId id) {
  const auto it = state.leases.find(id);
  check(it != state.leases.end(), "apply: no such lease");
  return it->second;
}

void hold_items(State& state, const Lease& lease) {
  PoolRecord& pool = state.pools.at(PoolKey{lease.gpu_class, lease.site});
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    hold_rank(state, lease, rank);
    pool.gpus_leased += std::ssize(rank.items);
    pool.demand_leased += is_owners_use(state, lease, rank) ? 0 : std::ssize(rank.items);
  }
}

void apply_event(State& state, const LeaseGranted& event) {
  const Lease& lease = event.lease;
  const auto waiting = state.waiting.find(lease.order);
  if (waiting != state.waiting.end()) {
    remove_waiting(state, waiting->second);
    state.waiting.erase(waiting);
    state.review_due = state.review_due && something_waits(state);
  }
  note_time(state, lease.placed);
  const std::size_t leases_before = state.leases.size();
  state.leases.emplace_hint(state.leases.end(), lease.id, lease);
  check(state.leases.size() == leases_before + 1, "apply: a lease twice");
  if (lease.state != LeaseState::Cancelled) {
    add_stay(state, lease);
    if (lease.state != LeaseState::Booked) {
      hold_items(state, lease);
    }
  }
  auto& orders = state.orders_of_tenant[lease.tenant];
  orders.insert(orders.end(), lease.order);
  if (const auto deadline = deadline_of(state, lease)) {
    state.deadlines.insert(state.deadlines.end(), *deadline);
  }
  note_id(state, lease.order.value());
  note_id(state, lease.id.value());
}

void apply_event(State& state, const LeaseRunning& event) {
  change_lease(state, event.id, [&](Lease& lease) {
    lease.state = LeaseState::Running;
    lease.running_since = lease.running_since.value_or(event.since);  // Held before: metered since
    lease.attempts.at(event.rank).state = AttemptState::Running;
  });
  note_time(state, event.since);
}

void apply_event(State& state, const LeaseExtended& event) {
  remove_stay(state, lease_at(state, event.id));
  change_lease(state, event.id, [&](Lease& lease) {
    check(event.end > lease.end, "apply: an extension that shortens");
    lease.end = event.end;
    lease.allocations.back().until = event.end;
    lease.slot_prices = event.slot_prices;
    lease.policy = event.policy;
    lease.quoted = event.quoted;
    lease.price_limit = event.price_limit;
  });
  add_stay(state, lease_at(state, event.id));
}

void apply_event(State& state, const LeaseEnding& event) {
  change_lease(state, event.id, [&](Lease& lease) {
    check(lease.state != LeaseState::Ending, "apply: a lease ends twice");
    lease.state = LeaseState::Ending;
    lease.ending = event.reason;
    lease.ending_since = event.at;
    lease.ending_detail = event.detail;
    lease.exit_code = event.exit_code;
  });
  note_time(state, event.at);
}

void apply_event(State& state, const LeaseEnded& event) {
  const Lease& lease = lease_at(state, event.id);
  if (const auto deadline = deadline_of(state, lease)) {
    state.deadlines.erase(*deadline);
  }
  if (lease.state != LeaseState::Cancelled) {
    remove_stay(state, lease);
    if (lease.state != LeaseState::Booked) {
      release_items(state, lease);
    }
  }
  const auto tenant = state.orders_of_tenant.find(lease.tenant);
  check(tenant != state.orders_of_tenant.end(), "apply: a lease without its tenant");
  tenant->second.erase(lease.order);
  if (tenant->second.empty()) {
    state.orders_of_tenant.erase(tenant);
  }
  state.leases.erase(event.id);
  note_time(state, event.at);
  note_change(state);
}

}  // namespace bmgpu::core
