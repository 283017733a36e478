#include <set>

#include "core/handlers.h"
#include "core/market/words.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kBasePricesMax = 1000;

struct Range {
  const char* field;
  std::int64_t value;
  std::int64_t low;
  std::int64_t high;
};

std::optional<Reason> check_ranges(const MarketPolicy& policy) {
  const std::int64_t base_max = micros_per_gpu_hour(Limits::kPriceMax);
  const std::int64_t day = hours(24).count();
  const Range ranges[] = {
      {"base_default", policy.base_default_micros_per_gpu_hour, 1, base_max},
      {"demand_k", policy.demand_k_permille, 0, 5000},
      {"duration_decay", policy.duration_decay_permille, 1, 1000},
      {"floor", policy.floor_permille, 0, 1000},
      {"load_threshold", policy.load_threshold_permille, 0, 1000},
      {"load_slope", policy.load_slope_permille, 0, 5000},
      {"surge_cap", policy.surge_cap_permille, 1000, 10'000},
      {"quote_lifetime (ms)", policy.quote_lifetime.count(), 1000, kSlot.count()},
      {"billed_min (ms)", policy.billed_min.count(), 0, day},
      {"preparation_max (ms)", policy.preparation_max.count(), 1000, day},
      {"waiting_max (ms)", policy.waiting_max.count(), 1000, 365 * day},
      {"load_horizon (ms)", policy.load_horizon.count(), 0, 30 * day},
      {"price_tick (ms)", policy.price_tick.count(), 1000, day},
      {"delisted_supply (ms)", policy.delisted_supply.count(), 0, 30 * day},
  };
  for (const Range& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return Reason{ReasonCode::OutOfRange, std::string(range.field) + " is " +
                                                std::to_string(range.low) + " to " +
                                                std::to_string(range.high)};
    }
  }
  return std::nullopt;
}

std::optional<Reason> check_base_prices(const MarketPolicy& policy) {
  if (policy.base_prices.size() > kBasePricesMax) {
    return Reason{ReasonCode::OutOfRange, "at most 1000 base prices"};
  }
  std::set<std::string> seen;
  for (const BasePrice& base : policy.base_prices) {
    if (base.words.empty() || base.words != normalise_words(base.words)) {
      return Reason{
          ReasonCode::OutOfRange,
          "base price words are lower-case words like 'a100 80gb', not '" + base.words + "'"};
    }
    if (base.micros_per_gpu_hour < 1 ||
        base.micros_per_gpu_hour > micros_per_gpu_hour(Limits::kPriceMax)) {
      return Reason{ReasonCode::OutOfRange,
                    "the base price of '" + base.words +
                        "' is 1 to 1,000,000,000,000 micro-units per GPU-hour"};
    }
    if (!seen.insert(base.words).second) {
      return Reason{ReasonCode::OutOfRange, "two base prices for '" + base.words + "'"};
    }
  }
  return std::nullopt;
}

}  // namespace

Decision handle(const State& state, const Stamp&, const SetPolicy& command) {
  if (command.policy.currency.size() != 3) {
    return refused(ReasonCode::OutOfRange, "a currency is three letters, like USD");
  }
  if (auto reason = check_ranges(command.policy)) {
    return refused(std::move(*reason));
  }
  if (auto reason = check_base_prices(command.policy)) {
    return refused(std::move(*reason));
  }
  MarketPolicy policy = command.policy;
  policy.version = PolicyVersion(state.policy.version.value() + 1);
  return done(PolicySet{std::move(policy)});
}

}  // namespace bmgpu::core
