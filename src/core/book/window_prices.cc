#include "core/book/window_prices.h"

#include <algorithm>

namespace bmgpu::core {
namespace {

constexpr std::size_t kRemembered = 1024;

bool same(const SlotDemand& a, const SlotDemand& b) {
  return a.taken == b.taken && a.expected == b.expected && a.waiting == b.waiting;
}

}  // namespace

WindowPrices::WindowPrices(const State& state, const PoolKey& key, const PoolRecord& pool,
                           std::int64_t gpus, Price owner_floor, Instant now, SlotNumber first,
                           std::int64_t starts, Duration length)
    : gpus_(gpus),
      first_(first),
      whole_(length.count() / kSlot.count()),
      rest_(length - kSlot * whole_) {
  const SlotPricer pricer(state.policy, state.slot_weights,
                          state.classes.at(key.gpu_class).base_micros_per_gpu_hour, owner_floor);
  const PoolDemand demand(state, key, pool, now, {});
  Multiples multiples(state.policy, pool.supply, kRemembered);
  late_ = pricer.lowest();
  const std::int64_t touched = whole_ + (rest_.count() > 0 ? 1 : 0);
  places_ = std::min(touched, pricer.weights());
  std::vector<SlotDemand> demands(static_cast<std::size_t>(starts + places_));
  std::int64_t demand_max = 0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    demands[i] = demand.at(first + SlotNumber(static_cast<std::int64_t>(i)));
    demand_min_ = i == 0 ? demands[i].with(0) : std::min(demand_min_, demands[i].with(0));
    demand_max = std::max(demand_max, demands[i].with(gpus));
  }
  line_of_demand_.assign(static_cast<std::size_t>(demand_max - demand_min_ + 1), -1);
  lines_.reserve(demands.size());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const Instant begins = slot_start(first + SlotNumber(static_cast<std::int64_t>(i)));
    lines_.push_back(begins - now < state.policy.load_horizon
                         ? add_soon(pool, demands[i], pricer, multiples)
                         : add_later(demands[i], pricer, multiples));
  }
}

void WindowPrices::add_prices(const SlotPricer& pricer, Fixed multiple,
                              std::vector<Price>& to) const {
  for (std::int64_t place = 0; place < places_; ++place) {
    to.push_back(pricer.price(multiple, place));
  }
}

std::size_t WindowPrices::line_of(std::int64_t demand, const SlotPricer& pricer,
                                  Multiples& multiples) {
  std::int32_t& line = line_of_demand_[static_cast<std::size_t>(demand - demand_min_)];
  if (line < 0) {
    line = static_cast<std::int32_t>(firsts_.size());
    add_prices(pricer, multiples.at(demand), firsts_);
  }
  return static_cast<std::size_t>(line);
}

WindowPrices::Line WindowPrices::add_soon(const PoolRecord& pool, const SlotDemand& demand,
                                          const SlotPricer& pricer, Multiples& multiples) {
  const Line line{sums_.size(), firsts_.size()};
  const auto places = static_cast<std::size_t>(places_);
  sums_.resize(sums_.size() + places);
  for (std::int64_t taken = 0; taken < gpus_; ++taken) {
    const Fixed multiple = pricer.loaded(multiples.at(demand.with(taken)),
                                         load_permille_of(pool, pool.gpus_leased + taken));
    std::vector<Price> prices;
    add_prices(pricer, multiple, prices);
    if (taken == 0) {
      firsts_.insert(firsts_.end(), prices.begin(), prices.end());
    }
    for (std::size_t place = 0; place < places; ++place) {
      sums_[line.sums + place] += prices[place];
    }
  }
  return line;
}

WindowPrices::Line WindowPrices::add_later(const SlotDemand& demand, const SlotPricer& pricer,
                                           Multiples& multiples) {
  if (has_last_ && same(demand, last_)) {
    return last_line_;
  }
  const auto places = static_cast<std::size_t>(places_);
  const Line line{sums_.size(), line_of(demand.with(0), pricer, multiples)};
  sums_.resize(sums_.size() + places);
  for (std::int64_t taken = 0; taken < gpus_; ++taken) {
    const std::size_t prices = line_of(demand.with(taken), pricer, multiples);
    for (std::size_t place = 0; place < places; ++place) {
      sums_[line.sums + place] += firsts_[prices + place];
    }
  }
  last_ = demand;
  last_line_ = line;
  has_last_ = true;
  return line;
}

Price WindowPrices::price_at(SlotNumber start, std::int64_t index) const {
  if (index >= places_) {
    return late_ * gpus_;
  }
  const Line& line = lines_[static_cast<std::size_t>((start - first_).count() + index)];
  return sums_[line.sums + static_cast<std::size_t>(index)];
}

Money WindowPrices::total(SlotNumber start) const {
  Money sum;
  const std::int64_t priced = std::min(whole_, places_);
  for (std::int64_t index = 0; index < priced; ++index) {
    sum += Money(price_at(start, index).count());
  }
  sum += Money((late_ * gpus_).count()) * (whole_ - priced);
  return rest_.count() > 0 ? sum + charge(price_at(start, whole_), rest_) : sum;
}

Price WindowPrices::lowest(SlotNumber start) const {
  const std::int64_t touched = whole_ + (rest_.count() > 0 ? 1 : 0);
  Price lowest = touched > places_ ? late_ : Price::max();
  for (std::int64_t index = 0; index < places_; ++index) {
    const Line& line = lines_[static_cast<std::size_t>((start - first_).count() + index)];
    lowest = std::min(lowest, firsts_[line.first + static_cast<std::size_t>(index)]);
  }
  return lowest;
}

}  // namespace bmgpu::core
