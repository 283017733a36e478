#include "core/book/close_slots.h"

#include <algorithm>

namespace bmgpu::core {

std::optional<Instant> next_close(const State& state) {
  if (state.open_slot == SlotNumber() || state.pools.empty()) {
    return std::nullopt;
  }
  return slot_start(state.open_slot + SlotNumber(1));
}

std::vector<Event> close_slots(const State& state, Instant now, Instant until) {
  std::vector<ClosedPool> pools;
  pools.reserve(state.pools.size());
  for (const auto& [key, pool] : state.pools) {
    pools.push_back(ClosedPool{key.gpu_class, key.site, pool.last_price,
                               pool.demand_leased + pool.demand_waiting, pool.supply});
  }
  const SlotNumber open = slot_of(until);
  std::vector<Event> events;
  for (SlotNumber slot = std::max(state.open_slot, open - SlotNumber(Limits::kClosedSlots));
       slot < open; slot += SlotNumber(1)) {
    events.emplace_back(SlotClosed{slot, now, pools});
  }
  return events;
}

}  // namespace bmgpu::core
