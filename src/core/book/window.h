// When and where a lease that is booked ahead would run, and for how much.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "core/core.h"
#include "core/placement/placement.h"
#include "core/reason.h"
#include "core/state.h"

namespace bmgpu::core {

// The cheapest start that the wish allows: by total, then the earlier one, then class and site,
// then the node with the fewest GPUs free for it, then by id. Starts are the borders of slots, now,
// and where an allowed interval begins; for At only that instant.
struct WindowSearch {
  std::optional<Candidate> best;
  std::vector<StartOption> others;  // the next best, each an hour or more from those before it
  bool has_supply = false;
};
// `options`: how many others. REQUIRES: the wish is checked and not Now.
WindowSearch search_window(const State& state, const std::vector<ClassId>& classes,
                           const Resources& resources, const TimeWish& wish, Duration duration,
                           Instant now, std::size_t options);

// Where an order with a wish for time is booked; a start that is now comes as one. Or why not, with
// the nearest start that works.
std::variant<Candidate, Reason> book_place(const State& state, const Resources& resources,
                                           const TimeWish& wish, Duration duration, Instant now);

// The node and lanes for a booking of [start, start + duration) in one pool, of nodes whose owner
// asks no more than `owner_floor`; absent: none has room.
std::optional<NodeId> book_fit(const State& state, const PoolKey& key, const Resources& resources,
                               Interval span, Price owner_floor);
// The lanes of a node that a booking of `span` can have.
std::uint64_t bookable_lanes(const NodeRecord& node, ClassId gpu_class, Interval span,
                             LeaseId except = LeaseId());

}  // namespace bmgpu::core
