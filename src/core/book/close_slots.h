// The end of quarter hours.
#pragma once

#include <vector>

#include "core/core.h"

namespace bmgpu::core {

// When the open slot is over; absent before any time has passed.
std::optional<Instant> next_close(const State& state);

// The slots that are over at `until`, oldest first: each noted with what the market is now. After a
// pause only the last Limits::kClosedSlots of them.
std::vector<Event> close_slots(const State& state, Instant now, Instant until);

}  // namespace bmgpu::core
