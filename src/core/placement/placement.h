// Which node, at which price. Placement itself never looks at the price: the cheapest class and
// owner's floor are chosen first, then the best fit among the nodes that cost the same.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/reason.h"
#include "core/state.h"

namespace bmgpu::core {

// Where an order would run and what it would pay.
struct Candidate {
  PoolKey pool;
  NodeId node;
  Instant start;
  Price owner_floor;  // the highest that its price covers
  std::vector<Price> slot_prices;
  Money total;  // the most that it can cost
};

// Classes that have all the words and the memory, by id; or the reason that there are none.
std::variant<std::vector<ClassId>, Reason> matching_classes(const State& state,
                                                            const Resources& resources);

// The pool whose demand the order adds to while it waits: of those that could ever hold it, the
// cheapest by last price, then class and site. Or the reason that it can never be served.
std::variant<PoolKey, Reason> home_pool(const State& state, const Resources& resources);

// The cheapest place to start at `now`, ignoring price limits. `waiting`: the order itself if
// demand counts it already. Or the reason that it cannot start now.
std::variant<Candidate, Reason> cheapest_place(const State& state, const Resources& resources,
                                               Instant now, Duration duration,
                                               const Order* waiting);

// Where GPUs are free now and stay so until `until`, for leases other than `except`.
struct FreeNow {
  Instant now;
  Instant until;
  LeaseId except{};
};
// When a lease that starts at `now` must have GPUs for itself: until its end, and a turnaround more
// before the next tenant's booked start.
FreeNow free_now(const State& state, Instant now, Duration duration);

// The best fit among a pool's nodes whose owner asks at most `owner_floor`.
std::optional<NodeId> best_fit(const State& state, const PoolKey& key, const PoolRecord& pool,
                               const Resources& resources, Price owner_floor, const FreeNow& free);
// The lanes of a node that are so (book/stays.h).
std::uint64_t lanes_free_now(const NodeRecord& node, ClassId gpu_class, const FreeNow& free);

// What the lease gets beside the GPUs: as asked, or the GPUs' share of the node.
NodeCapacity share_of_capacity(const NodeRecord& node, const Resources& resources);
// Whether the node has that beside what leases other than `except` have of it in [from, until).
bool fits_beside(const NodeRecord& node, const Resources& resources, Instant from, Instant until,
                 LeaseId except);

// The GPUs that it gets out of `lanes`, by id. REQUIRES: these are enough.
RankPlacement place(const State& state, const NodeRecord& node, ClassId gpu_class,
                    const Resources& resources, std::uint64_t lanes);

}  // namespace bmgpu::core
