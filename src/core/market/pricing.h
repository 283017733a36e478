// The price of a lease. docs/reference/price-vectors.md explains the formula for people.
//
// Prices go by prefix: with C(T) = T·d^T, the slot from h to h + ¼ hours costs p0·(C(h+¼) − C(h)),
// never below the floor. So every prefix of a lease costs the same whatever follows it, and
// stopping early, splitting or extending gains nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/book/demand.h"
#include "core/state.h"

namespace bmgpu::core {

// What moves the price of one GPU.
struct PriceInputs {
  std::int64_t base_micros_per_gpu_hour = 0;
  std::int64_t demand = 0;  // GPUs
  std::int64_t supply = 0;  // GPUs, > 0
  std::int64_t load_permille = 0;
  Price owner_floor;
};

// C(h + ¼) − C(h) by slot index for d = decay_permille / 1000. Ends where they stop being positive
// (every later slot is at the floor) or at the longest lease.
std::vector<Fixed> slot_weights(std::int64_t decay_permille);

// One GPU's price in the slot of that index. REQUIRES: inputs.supply > 0.
Price slot_price(const MarketPolicy& policy, const std::vector<Fixed>& weights,
                 const PriceInputs& inputs, std::int64_t slot_index);
// The same, factor by factor.
std::vector<PriceFactor> price_factors(const MarketPolicy& policy,
                                       const std::vector<Fixed>& weights, const PriceInputs& inputs,
                                       std::int64_t slot_index);

// How many slots [from, until) touches. REQUIRES: from < until.
std::int64_t slots_touched(Instant from, Instant until);

// p0 as a multiple of base, by demand: a price before its place in the lease counts. Remembers what
// it computed.
class Multiples {
 public:
  // `remembered`: how many, a power of two. REQUIRES: supply > 0.
  Multiples(const MarketPolicy& policy, std::int64_t supply, std::size_t remembered);
  Fixed at(std::int64_t demand);

 private:
  struct Entry {
    std::int64_t demand = -1;
    Fixed multiple;
  };
  const Fixed k_;
  const Fixed ln_supply_;
  std::vector<Entry> entries_;
};

// The price of one GPU with everything but the demand settled: for many slots at one time.
class SlotPricer {
 public:
  SlotPricer(const MarketPolicy& policy, const std::vector<Fixed>& weights,
             std::int64_t base_micros_per_gpu_hour, Price owner_floor);
  Price price(Fixed multiple, std::int64_t slot_index) const;
  Price lowest() const { return lowest_; }  // of slots whose weight is 0
  std::int64_t weights() const { return std::ssize(weights_); }
  Fixed loaded(Fixed multiple, std::int64_t load_permille) const;

 private:
  const MarketPolicy& policy_;
  const std::vector<Fixed>& weights_;
  const std::int64_t base_;
  Price floor_;
  Price cap_;
  Price owner_floor_;
  Price lowest_;
};

// How much of the pool is in use, with `leased` GPUs leased.
std::int64_t load_permille_of(const PoolRecord& pool, std::int64_t leased);

// What is asked of a pool: prices of a lease's slots from slot `first_index` of its age on.
struct PriceRequest {
  std::int64_t gpus = 0;
  Instant now{};  // slots that start load_horizon after it ignore the load
  Instant from{};
  Instant until{};
  std::int64_t first_index = 0;  // age index of the slot that holds `from`
  Price owner_floor{};
  // GPUs of the same order or lease that the pool's demand and load count already, or that its
  // supply leaves out because they are their owner's own use.
  OwnDemand own{};
  std::int64_t own_leased = 0;
  std::int64_t own_supply = 0;
};
// All GPUs together, per slot touched; the n-th GPU is priced as if n−1 were taken.
// REQUIRES: pool.supply + own_supply > 0.
std::vector<Price> lease_prices(const State& state, const PoolKey& key, const PoolRecord& pool,
                                const PriceRequest& request);

// What moves the price of the pool's next GPU in the slot of `at`. REQUIRES: pool.supply > 0.
PriceInputs next_gpu(const State& state, const PoolKey& key, const PoolRecord& pool, Instant now,
                     Instant at, Price owner_floor);

// Until when a lease of [start, end) is priced: at least billed_min.
Instant priced_until(Instant start, Instant end, Duration billed_min);

// Whether the average of the prices over [from, until) per GPU is within `limit` (0 = none).
bool within_limit(const std::vector<Price>& slot_prices, Instant from, Instant until,
                  std::int64_t gpus, Price limit);
// The average over [from, until) of one GPU's slot, rounded up.
Price average_price(const std::vector<Price>& slot_prices, Instant from, Instant until,
                    std::int64_t gpus);

}  // namespace bmgpu::core
