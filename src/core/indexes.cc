#include "core/indexes.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "core/market/pricing.h"
#include "core/market/words.h"

namespace bmgpu::core {
namespace {

Price limit_or_max(Price limit) { return limit.count() == 0 ? Price::max() : limit; }

template <typename Key>
void add_count(std::map<Key, std::int64_t>& counts, const Key& key, std::int64_t change) {
  if (change == 0) {
    return;
  }
  const auto it = counts.try_emplace(key, 0).first;
  it->second += change;
  check(it->second >= 0, "indexes: a count below zero");
  if (it->second == 0) {
    counts.erase(it);
  }
}

QueueKey queue_key(const Order& order) {
  return QueueKey{order.duration * order.resources.gpus, order.placed, order.id};
}

template <typename Lists>
void remove_node(Lists& lists, const typename Lists::key_type& key, NodeId node) {
  const auto it = lists.find(key);
  check(it != lists.end(), "indexes: a node that is not listed");
  it->second.erase(node);
  if (it->second.empty()) {
    lists.erase(it);
  }
}

bool holds_nothing(const FreeNodes& lists) {
  return std::all_of(lists.begin(), lists.end(), [](const auto& list) { return list.empty(); });
}

}  // namespace

State::State() { refresh_after_policy(*this); }

bool ResourcesLess::operator()(const Resources& a, const Resources& b) const {
  return std::tie(a.gpus, a.gpu_words, a.gpu_memory_mib_min, a.cpu_millis, a.memory_mib,
                  a.scratch_mib) < std::tie(b.gpus, b.gpu_words, b.gpu_memory_mib_min, b.cpu_millis,
                                            b.memory_mib, b.scratch_mib);
}

bool can_be_placed_on(const NodeRecord& node) {
  return node.ready && !node.lost && node.listing == NodeListing::Offered;
}

NodeShare share_of(const NodeRecord& node, ClassId gpu_class) {
  NodeShare share;
  const bool reachable = node.ready && !node.lost;
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.gpu_class != gpu_class) {
      continue;
    }
    share.named += gpu.named ? 1 : 0;
    if (!reachable || gpu.state == GpuState::Failed) {
      continue;
    }
    ++share.healthy;
    share.free += can_be_placed_on(node) && gpu.state == GpuState::Free ? 1 : 0;
    share.supply += !node.left_supply && !gpu.owners_use ? 1 : 0;
  }
  return share;
}

std::vector<ClassId> classes_of(const NodeRecord& node) {
  std::vector<ClassId> classes;
  for (const GpuRecord& gpu : node.gpus) {
    if (std::find(classes.begin(), classes.end(), gpu.gpu_class) == classes.end()) {
      classes.push_back(gpu.gpu_class);
    }
  }
  std::sort(classes.begin(), classes.end());
  return classes;
}

void refresh_supply(PoolRecord& pool) {
  pool.supply = 0;
  for (const auto& [floor, gpus] : pool.supply_by_floor) {
    if (floor > pool.last_price && pool.supply > 0) {
      break;
    }
    pool.supply += gpus;
  }
}

void refresh_demand(PoolRecord& pool) {
  pool.demand_waiting = 0;
  for (auto it = pool.waiting_by_limit.lower_bound(pool.last_price);
       it != pool.waiting_by_limit.end(); ++it) {
    pool.demand_waiting += it->second;
  }
}

void list_free_gpus(State& state, const NodeRecord& node) {
  for (const ClassId gpu_class : node.classes) {
    const auto free = static_cast<std::size_t>(share_of(node, gpu_class).free);
    if (free > 0) {
      PoolRecord& pool = state.pools.at(PoolKey{gpu_class, node.site});
      pool.free_by_floor[node.owner_floor][free].emplace(node.leases.empty(), node.id);
    }
  }
}

void unlist_free_gpus(State& state, const NodeRecord& node) {
  for (const ClassId gpu_class : node.classes) {
    const auto free = static_cast<std::size_t>(share_of(node, gpu_class).free);
    if (free == 0) {
      continue;
    }
    PoolRecord& pool = state.pools.at(PoolKey{gpu_class, node.site});
    const auto lists = pool.free_by_floor.find(node.owner_floor);
    check(lists != pool.free_by_floor.end(), "indexes: a floor that is not listed");
    std::set<NodeRank>& list = lists->second[free];
    list.erase(NodeRank{node.leases.empty(), node.id});
    if (list.empty() && holds_nothing(lists->second)) {
      pool.free_by_floor.erase(lists);
    }
  }
}

void list_node(State& state, const NodeRecord& node) {
  for (const ClassId gpu_class : node.classes) {
    PoolRecord& pool = ensure_pool(state, PoolKey{gpu_class, node.site});
    const NodeShare share = share_of(node, gpu_class);
    pool.gpus_healthy += share.healthy;
    if (share.named > 0) {
      pool.nodes_by_size[share.named].insert(node.id);
    }
    if (share.supply > 0) {
      pool.supply_by_floor[node.owner_floor] += share.supply;
      refresh_supply(pool);
    }
  }
  list_free_gpus(state, node);
}

void unlist_node(State& state, const NodeRecord& node) {
  unlist_free_gpus(state, node);
  for (const ClassId gpu_class : node.classes) {
    PoolRecord& pool = state.pools.at(PoolKey{gpu_class, node.site});
    const NodeShare share = share_of(node, gpu_class);
    pool.gpus_healthy -= share.healthy;
    if (share.named > 0) {
      remove_node(pool.nodes_by_size, share.named, node.id);
    }
    if (share.supply > 0) {
      add_count(pool.supply_by_floor, node.owner_floor, -share.supply);
      refresh_supply(pool);
    }
  }
}

PoolRecord& ensure_pool(State& state, const PoolKey& key) {
  const auto [it, is_new] = state.pools.try_emplace(key);
  if (is_new) {
    it->second.last_price = opening_price(state, key.gpu_class);
    state.calendars.try_emplace(key, state.open_slot);
  }
  return it->second;
}

void add_waiting(State& state, const Order& order) {
  state.queue[order.resources].insert(queue_key(order));
  auto& orders = state.orders_of_tenant[order.tenant];
  orders.insert(orders.end(), order.id);
  state.deadlines.insert(deadline_of(state, order));
  PoolRecord& pool = ensure_pool(state, PoolKey{order.gpu_class, order.site});
  const Price limit = limit_or_max(order.price_limit);
  add_count(pool.waiting_by_limit, limit, order.resources.gpus);
  pool.demand_waiting += limit >= pool.last_price ? order.resources.gpus : 0;
}

void remove_waiting(State& state, const Order& order) {
  const auto same = state.queue.find(order.resources);
  check(same != state.queue.end(), "indexes: an order that is not queued");
  same->second.erase(queue_key(order));
  if (same->second.empty()) {
    state.queue.erase(same);
  }
  state.deadlines.erase(deadline_of(state, order));
  PoolRecord& pool = state.pools.at(PoolKey{order.gpu_class, order.site});
  const Price limit = limit_or_max(order.price_limit);
  add_count(pool.waiting_by_limit, limit, -order.resources.gpus);
  pool.demand_waiting -= limit >= pool.last_price ? order.resources.gpus : 0;
}

std::optional<Deadline> deadline_of(const State& state, const Lease& lease) {
  const auto at = [&](Instant when) {
    return Deadline{when, DeadlineKind::Lease, lease.id.value()};
  };
  switch (lease.state) {
    case LeaseState::Booked:
      return at(lease.delayed ? std::min(lease.end, lease.start + state.policy.turnaround)
                              : lease.start);
    case LeaseState::Cancelled:
      return at(lease.start);
    case LeaseState::Preparing:
      return at(std::min(lease.end, lease.preparing_since + state.policy.preparation_max));
    case LeaseState::Held:
    case LeaseState::Running:
      return at(lease.end);
    case LeaseState::Ending:
      break;  // the node's word ends it
  }
  return std::nullopt;
}

// An expired quote is kept as long again: until then it can be taken at the price of the day.
Deadline deadline_of(const State& state, const Quote& quote) {
  return Deadline{quote.expires + state.policy.quote_lifetime, DeadlineKind::Quote,
                  quote.id.value()};
}

Deadline deadline_of(const State& state, const Order& order) {
  return Deadline{order.placed + state.policy.waiting_max, DeadlineKind::Order, order.id.value()};
}

std::optional<Deadline> deadline_of(const State& state, const NodeRecord& node) {
  if (node.listing != NodeListing::Draining || node.left_supply) {
    return std::nullopt;
  }
  return Deadline{node.listing_since + state.policy.delisted_supply, DeadlineKind::Supply,
                  node.id.value()};
}

ClassRecord make_class(const MarketPolicy& policy, ClassId id, const GpuClassSpec& spec) {
  ClassRecord record{id, spec, words_of(spec.model), policy.base_default_micros_per_gpu_hour};
  std::sort(record.words.begin(), record.words.end());
  for (const BasePrice& base : policy.base_prices) {
    if (all_words_in(base.words, record.words)) {
      record.base_micros_per_gpu_hour = base.micros_per_gpu_hour;
      break;
    }
  }
  return record;
}

void refresh_after_policy(State& state) {
  state.slot_weights = slot_weights(state.policy.duration_decay_permille);
  for (auto& [id, record] : state.classes) {
    record = make_class(state.policy, id, record.spec);
  }
  state.deadlines.clear();
  for (const auto& [id, lease] : state.leases) {
    if (const auto deadline = deadline_of(state, lease)) {
      state.deadlines.insert(*deadline);
    }
  }
  for (const auto& [id, quote] : state.quotes) {
    state.deadlines.insert(deadline_of(state, quote));
  }
  for (const auto& [id, order] : state.waiting) {
    state.deadlines.insert(deadline_of(state, order));
  }
  for (const auto& [id, node] : state.nodes) {
    if (const auto deadline = deadline_of(state, node)) {
      state.deadlines.insert(*deadline);
    }
  }
}

Price opening_price(const State& state, ClassId gpu_class) {
  const std::int64_t base = state.classes.at(gpu_class).base_micros_per_gpu_hour;
  return slot_price(state.policy, state.slot_weights, PriceInputs{base, 1, 1, 0, Price()}, 0);
}

}  // namespace bmgpu::core
