// What a lease costs. Money moves in a later version of this folder; a charge is a number here.
#pragma once

#include <optional>

#include "core/types.h"

namespace bmgpu::core {

// Σ over the slots of ⌈price × ms in the slot ÷ 900,000⌉ for the part [from, until) of a lease
// whose first slot price belongs to the slot of `lease_start`. REQUIRES: prices cover the part.
Money charge_between(const std::vector<Price>& slot_prices, Instant lease_start, Instant from,
                     Instant until);

struct Bill {
  std::optional<Instant> from;  // absent: it never ran, nothing is charged
  Duration billed;              // wall time
  Money charged;
  Money fee;  // the part of it that is for time given back
  bool operator==(const Bill&) const = default;
};
// The bill of a lease whose metering stopped at `stopped` for `reason`.
//  - Nothing for a time in which it never ran, or if its start failed.
//  - At least lease.billed_min, unless the node or a GPU failed.
//  - Of a lease that was booked ahead, at least its cancel_fee_permille of the quote once it has
//    started, so that stopping right after the start, or a job that cannot start, is no way around
//    the fee of cancelling; unless the node or a GPU failed.
//  - A reservation that was held before its job came is metered from its start, whatever becomes of
//    the job.
//  - Never more than lease.quoted, and for no time outside the lease's priced window.
Bill bill(const Lease& lease, EndReason reason, Instant stopped);

}  // namespace bmgpu::core
