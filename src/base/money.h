// Money and Price: integers in micro-units of the market's one currency.
#pragma once

#include <cstdint>

#include "base/quantity.h"
#include "base/time.h"

namespace bmgpu {

// An amount in micro-units (1/1,000,000) of the currency. May be negative (a refund).
using Money = Quantity<struct MoneyTag>;

// Micro-units for one whole GPU during one slot (15 minutes). Shown per GPU-hour as ×4, exactly.
using Price = Quantity<struct PriceTag>;

// What a price costs for `gpu_time` (GPU-milliseconds: one GPU for one millisecond = 1), rounded
// up to the next micro-unit: ⌈price × gpu_ms / 900,000⌉. Rounding happens once per lease and slot.
// REQUIRES: price ≥ 0, gpu_time ≥ 0. An overflowing result is a check().
Money charge(Price price, Duration gpu_time);

// The micro-units per GPU-hour of a price per GPU-slot.
constexpr std::int64_t micros_per_gpu_hour(Price price) { return (price * 4).count(); }

}  // namespace bmgpu
