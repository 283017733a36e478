// What becomes of booked leases: they start, move, wait a little, or end without a charge.
#pragma once

#include <vector>

#include "core/core.h"

namespace bmgpu::core {

// A booked lease whose start has come: it starts where it is, or on equal GPUs elsewhere (it moves
// first); if there are none it is delayed, and once that is too long it ends. Never empty, unless
// it is delayed already and nothing has changed.
std::vector<Event> start_or_delay(const State& state, const Stamp& stamp, const Lease& lease);

// The end of a delayed lease whose time is up, or of one whose whole time passed unstarted.
LeaseEnded end_unstarted(const State& state, const Lease& lease, Instant now);

// The next of the delayed and displaced leases that something can be done for; empty: none.
// Looks at the earliest ones only, so that a tick's work is bounded.
std::vector<Event> help_one_booked(const State& state, const Stamp& stamp);

// The fee of a lease that was cancelled while booked, if it were settled now: a share of its price
// for each slot and GPU that nobody else has taken since.
Money cancel_fee(const State& state, const Lease& lease);
// Its end. REQUIRES: Cancelled.
LeaseEnded settle_cancelled(const State& state, const Lease& lease, Instant at);

}  // namespace bmgpu::core
