#include "core/market/pricing.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace bmgpu::core {
namespace {

constexpr std::int64_t kSlotsPerHour = 4;
constexpr std::int64_t kPermille = 1000;
constexpr std::int64_t kDemandMax = 8'000'000;  // GPUs; more demand moves the price no further
constexpr std::int64_t kSlotsMax = Limits::kLeaseMax.count() / kSlot.count() + 1;

std::int64_t divide_half_up(Wide numerator, std::int64_t denominator) {
  return static_cast<std::int64_t>((2 * numerator + denominator) / (2 * Wide{denominator}));
}

// A share of base, per slot.
Price share_of_base(std::int64_t base_micros_per_gpu_hour, std::int64_t permille) {
  return Price(
      divide_half_up(Wide{base_micros_per_gpu_hour} * permille, kPermille * kSlotsPerHour));
}

// 1 + k·ln(demand / supply). REQUIRES: demand > 0, supply > 0.
Fixed demand_factor(const MarketPolicy& policy, std::int64_t demand, std::int64_t supply) {
  const Fixed k = Fixed::from_ratio(policy.demand_k_permille, kPermille);
  return Fixed::from_int(1) +
         k * (ln(Fixed::from_int(std::min(demand, kDemandMax))) - ln(Fixed::from_int(supply)));
}

Fixed load_factor(const MarketPolicy& policy, std::int64_t load_permille) {
  const std::int64_t above = load_permille - policy.load_threshold_permille;
  if (above <= 0) {
    return Fixed::from_int(1);
  }
  return Fixed::from_ratio(kPermille * kPermille + above * policy.load_slope_permille,
                           kPermille * kPermille);
}

// Bounds that do not depend on the slot.
struct Bounds {
  Price floor;
  Price cap;
  Price owner_floor;
};
Bounds bounds_of(const MarketPolicy& policy, const PriceInputs& inputs) {
  const std::int64_t base = inputs.base_micros_per_gpu_hour;
  return Bounds{share_of_base(base, policy.floor_permille),
                share_of_base(base, policy.surge_cap_permille), inputs.owner_floor};
}
Price clamp(const Bounds& bounds, Price prefix) {
  return std::max(std::min(std::max(prefix, bounds.floor), bounds.cap), bounds.owner_floor);
}

// p0 as a multiple of base; zero or less stands for the floor.
Fixed multiple_of_base(const MarketPolicy& policy, const PriceInputs& inputs) {
  if (inputs.demand <= 0) {
    return Fixed{};
  }
  return demand_factor(policy, inputs.demand, inputs.supply) *
         load_factor(policy, inputs.load_permille);
}

// base × multiple × weight, exactly, rounded half up once; 0 where it is not positive.
Price prefix_price(std::int64_t base_micros_per_gpu_hour, Fixed multiple, Fixed weight) {
  if (multiple.raw <= 0 || weight.raw <= 0) {
    return Price();
  }
  constexpr int kShift = 2 * Fixed::kFractionBits;
  const Wide product = Wide{base_micros_per_gpu_hour} * multiple.raw * weight.raw;
  return Price(static_cast<std::int64_t>((product + (Wide{1} << (kShift - 1))) >> kShift));
}

Fixed weight_at(const std::vector<Fixed>& weights, std::int64_t slot_index) {
  return slot_index < std::ssize(weights) ? weights[static_cast<std::size_t>(slot_index)] : Fixed{};
}

std::string decimal(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t thousandths = divide_half_up(Wide{numerator} * kPermille, denominator);
  std::string fraction = std::to_string(thousandths % kPermille);
  fraction.insert(0, 3 - fraction.size(), '0');
  return std::to_string(thousandths / kPermille) + "." + fraction;
}

Wide sum_over(const std::vector<Price>& slot_prices, Instant from, Instant until) {
  Wide sum = 0;
  const SlotNumber first = slot_of(from);
  for (std::size_t i = 0; i < slot_prices.size(); ++i) {
    const Instant slot_begin = slot_start(first) + kSlot * static_cast<std::int64_t>(i);
    const Duration overlap = std::min(until, slot_begin + kSlot) - std::max(from, slot_begin);
    sum += Wide{slot_prices[i].count()} * std::max<std::int64_t>(overlap.count(), 0);
  }
  return sum;
}

}  // namespace

std::int64_t load_permille_of(const PoolRecord& pool, std::int64_t leased) {
  return pool.gpus_healthy > 0
             ? std::clamp<std::int64_t>(leased * kPermille / pool.gpus_healthy, 0, kPermille)
             : 0;
}

std::vector<Fixed> slot_weights(std::int64_t decay_permille) {
  const Fixed decay = Fixed::from_ratio(decay_permille, kPermille);
  const auto total_at = [&](std::int64_t slots) {  // C(T) at T = slots / 4
    const Fixed hours = Fixed::from_ratio(slots, kSlotsPerHour);
    return hours * pow_unit(decay, hours);
  };
  std::vector<Fixed> weights;
  Fixed before = total_at(0);
  for (std::int64_t slots = 1; slots <= kSlotsMax; ++slots) {
    const Fixed after = total_at(slots);
    if (after <= before) {
      break;
    }
    weights.push_back(after - before);
    before = after;
  }
  return weights;
}

Price slot_price(const MarketPolicy& policy, const std::vector<Fixed>& weights,
                 const PriceInputs& inputs, std::int64_t slot_index) {
  check(inputs.supply > 0, "slot_price: no supply");
  const Fixed multiple = multiple_of_base(policy, inputs);
  const Fixed weight = weight_at(weights, slot_index);
  return clamp(bounds_of(policy, inputs),
               prefix_price(inputs.base_micros_per_gpu_hour, multiple, weight));
}

std::vector<PriceFactor> price_factors(const MarketPolicy& policy,
                                       const std::vector<Fixed>& weights, const PriceInputs& inputs,
                                       std::int64_t slot_index) {
  const std::int64_t base = inputs.base_micros_per_gpu_hour;
  const Fixed quarter = Fixed::from_ratio(1, kSlotsPerHour);
  const Fixed demand =
      inputs.demand > 0 ? demand_factor(policy, inputs.demand, inputs.supply) : Fixed{};
  const Fixed multiple = multiple_of_base(policy, inputs);
  const Bounds bounds = bounds_of(policy, inputs);
  const Price prefix = prefix_price(base, multiple, weight_at(weights, slot_index));
  const Price floored = std::max(prefix, bounds.floor);
  const Price capped = std::min(floored, bounds.cap);
  const auto hours = [](Price price) { return decimal(micros_per_gpu_hour(price), 1'000'000); };
  return {
      {"base", hours(share_of_base(base, kPermille)) + " per GPU-hour",
       share_of_base(base, kPermille)},
      {"demand",
       std::to_string(inputs.demand) + " wanted of " + std::to_string(inputs.supply) + " GPUs",
       prefix_price(base, demand, quarter)},
      {"load", decimal(inputs.load_permille, 10) + " % in use",
       prefix_price(base, multiple, quarter)},
      {"prefix", "slot " + std::to_string(slot_index + 1) + " of the lease", prefix},
      {"floor", "at least " + hours(bounds.floor) + " per GPU-hour", floored},
      {"cap", "at most " + hours(bounds.cap) + " per GPU-hour", capped},
      {"owner-floor", "the owner asks at least " + hours(bounds.owner_floor) + " per GPU-hour",
       std::max(capped, bounds.owner_floor)},
  };
}

std::int64_t slots_touched(Instant from, Instant until) {
  check(from < until, "slots_touched: an empty interval");
  return (slot_of(until - milliseconds(1)) - slot_of(from)).count() + 1;
}

Multiples::Multiples(const MarketPolicy& policy, std::int64_t supply, std::size_t remembered)
    : k_(Fixed::from_ratio(policy.demand_k_permille, kPermille)),
      ln_supply_(ln(Fixed::from_int(supply))),
      entries_(remembered) {}

Fixed Multiples::at(std::int64_t demand) {
  if (demand <= 0) {
    return Fixed{};
  }
  Entry& entry = entries_[static_cast<std::size_t>(demand) & (entries_.size() - 1)];
  if (entry.demand != demand) {
    const Fixed ratio = ln(Fixed::from_int(std::min(demand, kDemandMax))) - ln_supply_;
    entry = Entry{demand, Fixed::from_int(1) + k_ * ratio};
  }
  return entry.multiple;
}

SlotPricer::SlotPricer(const MarketPolicy& policy, const std::vector<Fixed>& weights,
                       std::int64_t base_micros_per_gpu_hour, Price owner_floor)
    : policy_(policy),
      weights_(weights),
      base_(base_micros_per_gpu_hour),
      floor_(share_of_base(base_, policy.floor_permille)),
      cap_(share_of_base(base_, policy.surge_cap_permille)),
      owner_floor_(owner_floor),
      lowest_(price(Fixed{}, 0)) {}

Price SlotPricer::price(Fixed multiple, std::int64_t slot_index) const {
  return clamp(Bounds{floor_, cap_, owner_floor_},
               prefix_price(base_, multiple, weight_at(weights_, slot_index)));
}

Fixed SlotPricer::loaded(Fixed multiple, std::int64_t load_permille) const {
  return multiple * load_factor(policy_, load_permille);
}

PriceInputs next_gpu(const State& state, const PoolKey& key, const PoolRecord& pool, Instant now,
                     Instant at, Price owner_floor) {
  const bool is_soon = slot_start(slot_of(at)) - now < state.policy.load_horizon;
  return PriceInputs{state.classes.at(key.gpu_class).base_micros_per_gpu_hour,
                     PoolDemand(state, key, pool, now, {}).at(slot_of(at)).with(0), pool.supply,
                     is_soon ? load_permille_of(pool, pool.gpus_leased) : 0, owner_floor};
}

std::vector<Price> lease_prices(const State& state, const PoolKey& key, const PoolRecord& pool,
                                const PriceRequest& request) {
  constexpr std::size_t kRemembered = 64;
  const std::int64_t supply = pool.supply + request.own_supply;
  check(supply > 0, "lease_prices: no supply");
  const MarketPolicy& policy = state.policy;
  const SlotPricer pricer(policy, state.slot_weights,
                          state.classes.at(key.gpu_class).base_micros_per_gpu_hour,
                          request.owner_floor);
  const PoolDemand pool_demand(state, key, pool, request.now, request.own);
  Multiples multiples(policy, supply, kRemembered);
  const std::int64_t leased = pool.gpus_leased - request.own_leased;

  std::vector<Price> prices(static_cast<std::size_t>(slots_touched(request.from, request.until)));
  const SlotNumber first = slot_of(request.from);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto offset = static_cast<std::int64_t>(i);
    const SlotNumber slot = first + SlotNumber(offset);
    const bool is_soon = slot_start(slot) - request.now < policy.load_horizon;
    const std::int64_t index = request.first_index + offset;
    if (index >= pricer.weights()) {  // whatever the demand is
      prices[i] = pricer.lowest() * request.gpus;
      continue;
    }
    const SlotDemand demand = pool_demand.at(slot);
    for (std::int64_t taken = 0; taken < request.gpus; ++taken) {
      Fixed multiple = multiples.at(demand.with(taken));
      if (is_soon) {
        multiple = pricer.loaded(multiple, load_permille_of(pool, leased + taken));
      }
      prices[i] += pricer.price(multiple, index);
    }
  }
  return prices;
}

Instant priced_until(Instant start, Instant end, Duration billed_min) {
  return std::max(end, start + billed_min);
}

bool within_limit(const std::vector<Price>& slot_prices, Instant from, Instant until,
                  std::int64_t gpus, Price limit) {
  return limit.count() == 0 ||
         sum_over(slot_prices, from, until) <= Wide{limit.count()} * gpus * (until - from).count();
}

Price average_price(const std::vector<Price>& slot_prices, Instant from, Instant until,
                    std::int64_t gpus) {
  const Wide gpu_time = Wide{gpus} * (until - from).count();
  check(gpu_time > 0, "average_price: an empty interval");
  return Price(
      static_cast<std::int64_t>((sum_over(slot_prices, from, until) + gpu_time - 1) / gpu_time));
}

}  // namespace bmgpu::core
