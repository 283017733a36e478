// What is wanted of a class and site in each slot: docs/adr/0006-forward-book.md has the why.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/state.h"

namespace bmgpu::core {

// GPUs. What leases take is part of what was expected, what waits comes on top.
struct SlotDemand {
  std::int64_t taken = 0;     // leased, and booked for the slot
  std::int64_t expected = 0;  // by the curve, in all
  std::int64_t waiting = 0;
  // With `more` GPUs taken.
  std::int64_t with(std::int64_t more) const { return std::max(taken + more, expected) + waiting; }
};

// GPUs of the same order or lease that the pool counts already.
struct OwnDemand {
  std::int64_t leased = 0;
  std::int64_t waiting = 0;
};

// A pool's demand as it is known at `now`.
class PoolDemand {
 public:
  PoolDemand(const State& state, const PoolKey& key, const PoolRecord& pool, Instant now,
             OwnDemand own);

  // The curve of SetDemandCurve; where it says nothing, what was noted a week before; where nothing
  // was noted, what is leased now stays leased and what is booked comes on top.
  SlotDemand at(SlotNumber slot) const;

 private:
  std::optional<std::int64_t> expected(SlotNumber slot) const;

  const Calendar* calendar_ = nullptr;  // null: the pool has had no node yet
  const DemandCurveSet* curve_ = nullptr;
  const std::vector<std::int64_t>* week_ = nullptr;
  SlotNumber now_;
  SlotNumber waiting_until_;  // no order that waits now can start then or later
  std::int64_t leased_now_ = 0;
  std::int64_t waiting_ = 0;
};

}  // namespace bmgpu::core
