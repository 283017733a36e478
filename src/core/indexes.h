// Keeps the derived parts of a State in step with the rest. For apply() and the invariants.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/state.h"

namespace bmgpu::core {

// Takes all that `node` adds to pools out of them, or puts it in. Every change of a node happens
// between the two. REQUIRES: calls alternate for a node.
void unlist_node(State& state, const NodeRecord& node);
void list_node(State& state, const NodeRecord& node);
// The same where only which GPUs are free, and whether the node has leases, changes in between.
void unlist_free_gpus(State& state, const NodeRecord& node);
void list_free_gpus(State& state, const NodeRecord& node);

// One node's part of one pool.
struct NodeShare {
  std::int64_t named = 0;
  std::int64_t healthy = 0;  // 0 unless the node is ready
  std::int64_t free = 0;     // 0 unless the node can be placed on
  std::int64_t supply = 0;
};
NodeShare share_of(const NodeRecord& node, ClassId gpu_class);
std::vector<ClassId> classes_of(const NodeRecord& node);  // without duplicates, by id
bool can_be_placed_on(const NodeRecord& node);

// Recomputes supply, or demand_waiting, from the pool's maps and last price.
void refresh_supply(PoolRecord& pool);
void refresh_demand(PoolRecord& pool);

// The pool of that class and site, with its calendar; a new one starts at the opening price. Pools
// outlive nodes.
PoolRecord& ensure_pool(State& state, const PoolKey& key);

void add_waiting(State& state, const Order& order);
void remove_waiting(State& state, const Order& order);

// The next time at which the clock alone changes the thing; absent: never.
std::optional<Deadline> deadline_of(const State& state, const Lease& lease);
Deadline deadline_of(const State& state, const Quote& quote);
Deadline deadline_of(const State& state, const Order& order);
std::optional<Deadline> deadline_of(const State& state, const NodeRecord& node);

// What follows from the policy: weights, base prices, deadlines.
void refresh_after_policy(State& state);
ClassRecord make_class(const MarketPolicy& policy, ClassId id, const GpuClassSpec& spec);
// The price that a new pool starts from: demand equals supply.
Price opening_price(const State& state, ClassId gpu_class);

}  // namespace bmgpu::core
