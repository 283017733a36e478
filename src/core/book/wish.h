// What an order wishes about its time: whether that can be, and which starts it allows.
#pragma once

#include <variant>
#include <vector>

#include "core/reason.h"
#include "core/state.h"

namespace bmgpu::core {

// The end of what can be booked: a booking is finished by then.
Instant book_end(const State& state, Instant now);

// `at`, or the next border of a slot after it.
Instant next_border(Instant at);

// `wish` with its earliest start not before `now`, or why no lease of that length can meet it; the
// reason names the nearest time that works.
std::variant<TimeWish, Reason> checked_wish(const State& state, const TimeWish& wish,
                                            Duration duration, Instant now);

// Every start that the wish allows, in order: its own for At; for Cheapest the borders of slots,
// and where an allowed time begins. REQUIRES: the wish is checked and not Now.
std::vector<Instant> starts_of(const TimeWish& wish, Duration duration);

}  // namespace bmgpu::core
