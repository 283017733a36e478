// The cheapest window, best first: every start has a total from the table of prices; the cheapest
// one that has room wins. A look for room that fails names the slots that are full, and no start
// whose window holds these is looked at again. Cost: the table once, then one OR over the nodes for
// each start that is tried.
#include "core/book/window.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "core/book/stays.h"
#include "core/book/window_prices.h"
#include "core/book/wish.h"
#include "core/ledger/charge.h"
#include "core/market/times.h"

namespace bmgpu::core {
namespace {

constexpr Duration kOthersApart = hours(1);

// How good a node is for a booking: what it costs, fewest GPUs free for it, then id.
struct Fit {
  Money total;
  std::int64_t free = 0;
  NodeId node;
  Price owner_floor;
  friend bool operator<(const Fit& a, const Fit& b) {
    return std::tie(a.total, a.free, a.node) < std::tie(b.total, b.free, b.node);
  }
};

// Looks for room in one pool.
class PoolRoom {
 public:
  PoolRoom(const State& state, const PoolKey& key, const Resources& resources)
      : state_(state), key_(key), calendar_(state.calendars.at(key)), resources_(resources) {}

  const PoolKey& key() const { return key_; }

  // The best node for [span): total_of(floor) is what it costs on a node with that owner's floor,
  // `least` or more; absent: not there.
  template <typename TotalOf>
  std::optional<Fit> best(Interval span, Money least, TotalOf total_of) {
    const SlotNumber first = slot_of(next_border(span.from));
    const SlotNumber last = std::max(first, slot_of(span.until));  // slots in between are filled
    for (const auto& [from, until] : full_) {
      if (first <= from && until < last) {
        return std::nullopt;
      }
    }
    if (const auto blocked = calendar_.find_free(first, last, resources_.gpus, free_)) {
      if (first < last) {
        full_.emplace_back(first, *blocked);
      }
      return std::nullopt;
    }
    look_at_ends(span, first, last);
    std::optional<Fit> best;
    std::int64_t most = Calendar::kLanesMax;  // more free GPUs are no better than the best
    each_fit(span, most, total_of, [&](const Fit& fit) {
      if (!best || fit < *best) {
        best = fit;
        most = best->total == least ? best->free : most;
      }
    });
    if (!best || has_room_beside(*best, span)) {
      return best;
    }
    std::vector<Fit> fits;  // rare: its CPU or memory is given away
    each_fit(span, Calendar::kLanesMax, total_of, [&](const Fit& fit) { fits.push_back(fit); });
    std::sort(fits.begin(), fits.end());
    const auto fit = std::find_if(fits.begin(), fits.end(),
                                  [&](const Fit& one) { return has_room_beside(one, span); });
    return fit != fits.end() ? std::optional(*fit) : std::nullopt;
  }

 private:
  // Fills `whole_` with the GPUs that are also free in the slots that are only partly ours.
  void look_at_ends(Interval span, SlotNumber first, SlotNumber last) {
    whole_ = free_;
    if (slot_start(first) != span.from) {
      calendar_.take_out(first - SlotNumber(1), whole_);
    }
    if (slot_start(last) < span.until) {
      calendar_.take_out(last, whole_);
    }
  }

  // visit(Fit) for each row with enough GPUs, and not surely more than `most`.
  template <typename TotalOf, typename Visit>
  void each_fit(Interval span, const std::int64_t& most, TotalOf total_of, Visit visit) const {
    calendar_.for_each_row(free_, whole_, resources_.gpus, most, [&](Calendar::Row row) {
      std::uint64_t lanes = calendar_.get(free_, row);
      const NodeId node = calendar_.node(row);
      if (lanes != calendar_.get(whole_, row)) {
        lanes &= ~held_lanes(state_.nodes.at(node), key_.gpu_class, span.from, span.until);
      }
      const std::int64_t free = std::popcount(lanes);
      if (free < resources_.gpus) {
        return;
      }
      const Price floor = calendar_.owner_floor(row);
      if (const std::optional<Money> total = total_of(floor)) {
        visit(Fit{*total, free, node, floor});
      }
    });
  }

  bool has_room_beside(const Fit& fit, Interval span) const {
    return fits_beside(state_.nodes.at(fit.node), resources_, span.from, span.until, LeaseId());
  }

  const State& state_;
  const PoolKey key_;
  const Calendar& calendar_;
  const Resources& resources_;
  Calendar::Words free_;                                 // in the slots that the span fills
  Calendar::Words whole_;                                // in all slots that it touches
  std::vector<std::pair<SlotNumber, SlotNumber>> full_;  // no window holds [first, second]
};

class Search {
 public:
  Search(const State& state, const Resources& resources, Duration duration, Instant now)
      : state_(state), resources_(resources), duration_(duration), now_(now) {}

  void add_pools(const std::vector<ClassId>& classes) {
    for (const ClassId id : classes) {
      for (auto it = state_.pools.lower_bound(PoolKey{id, SiteId()});
           it != state_.pools.end() && it->first.gpu_class == id; ++it) {
        const auto& [key, pool] = *it;
        const auto calendar = state_.calendars.find(key);
        const auto floor =
            calendar != state_.calendars.end() ? calendar->second.lowest_floor() : std::nullopt;
        has_supply_ = has_supply_ || pool.supply > 0 || pool.gpus_leased > pool.demand_leased;
        if (pool.supply > 0 && floor) {
          pools_.push_back(Pool{&pool, *floor, PoolRoom(state_, key, resources_), nullptr});
        }
      }
    }
  }

  bool has_supply() const { return has_supply_; }

  // Best first: the cheapest, then up to `options` more.
  std::pair<std::optional<Candidate>, std::vector<StartOption>> cheapest(
      const std::vector<Instant>& starts, std::optional<Candidate> now_place, std::size_t options);

  // The first of `starts` with room, whatever it costs.
  std::optional<Instant> first_with_room(const std::vector<Instant>& starts) {
    for (const Instant start : starts) {
      for (Pool& pool : pools_) {
        if (pool.room.best(span(start), Money(), [](Price) { return std::optional(Money()); })) {
          return start;
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Pool {
    const PoolRecord* record;
    Price lowest_floor;
    PoolRoom room;
    std::unique_ptr<WindowPrices> prices;  // null: there is only one start
  };
  // A start in a pool, with its least total until its node is known.
  struct Entry {
    Money total;
    Instant start;
    std::size_t pool = 0;
    std::optional<Fit> fit{};
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tuple(a.total, a.start, a.pool, a.fit.has_value()) <
             std::tuple(b.total, b.start, b.pool, b.fit.has_value());
    }
  };

  Interval span(Instant start) const { return Interval{start, start + duration_}; }
  Instant priced_end(Instant start) const {
    return priced_until(start, start + duration_, state_.policy.billed_min);
  }
  std::vector<Price> prices_of(const Pool& pool, Instant start, Price floor) const {
    return lease_prices(state_, pool.room.key(), *pool.record,
                        PriceRequest{.gpus = resources_.gpus,
                                     .now = now_,
                                     .from = start,
                                     .until = priced_end(start),
                                     .owner_floor = floor});
  }
  Money total_of(const Pool& pool, Instant start, Price floor) const {
    return charge_between(prices_of(pool, start, floor), start, start, priced_end(start));
  }
  void make_tables(const std::vector<Instant>& starts);
  std::vector<Entry> entries_of(const std::vector<Instant>& starts) const;
  std::optional<Entry> with_fit(const Entry& entry);
  Candidate candidate(const Entry& entry) const;

  const State& state_;
  const Resources& resources_;
  const Duration duration_;
  const Instant now_;
  std::vector<Pool> pools_;
  bool has_supply_ = false;
};

void Search::make_tables(const std::vector<Instant>& starts) {
  if (starts.size() < 2) {
    return;
  }
  const SlotNumber first = slot_of(starts.front());
  const std::int64_t slots = (slot_of(starts.back()) - first).count() + 1;
  for (Pool& pool : pools_) {
    pool.prices = std::make_unique<WindowPrices>(
        state_, pool.room.key(), *pool.record, resources_.gpus, pool.lowest_floor, now_, first,
        slots, priced_end(starts.front()) - starts.front());
  }
}

std::vector<Search::Entry> Search::entries_of(const std::vector<Instant>& starts) const {
  std::vector<Entry> entries;
  entries.reserve(starts.size() * pools_.size());
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const Pool& pool = pools_[i];
    for (const Instant start : starts) {
      const bool is_border = slot_start(slot_of(start)) == start;
      entries.push_back(Entry{pool.prices != nullptr && is_border
                                  ? pool.prices->total(slot_of(start))
                                  : total_of(pool, start, pool.lowest_floor),
                              start, i});
    }
  }
  return entries;
}

std::optional<Search::Entry> Search::with_fit(const Entry& entry) {
  Pool& pool = pools_[entry.pool];
  const bool is_border = slot_start(slot_of(entry.start)) == entry.start;
  // Floors up to the lowest price change nothing.
  const Price harmless = pool.prices != nullptr && is_border
                             ? pool.prices->lowest(slot_of(entry.start))
                             : pool.lowest_floor;
  std::map<Price, Money> totals;
  const auto fit = pool.room.best(span(entry.start), entry.total, [&](Price floor) {
    if (floor <= harmless) {
      return std::optional(entry.total);
    }
    const auto [it, is_new] = totals.try_emplace(floor);
    if (is_new) {
      it->second = total_of(pool, entry.start, floor);
    }
    return std::optional(it->second);
  });
  return fit ? std::optional(Entry{fit->total, entry.start, entry.pool, fit}) : std::nullopt;
}

Candidate Search::candidate(const Entry& entry) const {
  const Pool& pool = pools_[entry.pool];
  const Price floor = std::max(entry.fit->owner_floor, pool.lowest_floor);
  std::vector<Price> prices = prices_of(pool, entry.start, floor);
  const Money total = charge_between(prices, entry.start, entry.start, priced_end(entry.start));
  check(total == entry.total, "window: two totals of one start");
  return Candidate{pool.room.key(), entry.fit->node, entry.start, floor, std::move(prices), total};
}

std::pair<std::optional<Candidate>, std::vector<StartOption>> Search::cheapest(
    const std::vector<Instant>& starts, std::optional<Candidate> now_place, std::size_t options) {
  make_tables(starts);
  std::vector<Entry> entries = entries_of(starts);
  const auto later = [](const Entry& a, const Entry& b) { return b < a; };
  std::make_heap(entries.begin(), entries.end(), later);
  const auto pop = [&] {
    std::pop_heap(entries.begin(), entries.end(), later);
    const Entry entry = entries.back();
    entries.pop_back();
    return entry;
  };
  std::optional<Candidate> best;
  std::vector<StartOption> chosen;
  const auto is_near = [&](Instant start) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const StartOption& one) {
      return one.start - kOthersApart < start && start < one.start + kOthersApart;
    });
  };
  const auto choose = [&](Instant start, Money total) {
    if (!is_near(start)) {
      chosen.push_back(StartOption{start, total});
    }
  };
  while (chosen.size() <= options && (!entries.empty() || now_place)) {
    if (now_place && (entries.empty() || now_place->total <= entries.front().total)) {
      choose(now_place->start, now_place->total);
      best = best ? std::move(best) : std::move(now_place);
      now_place.reset();
      continue;
    }
    const Entry entry = pop();
    if (is_near(entry.start)) {
      continue;
    }
    if (entry.fit) {
      choose(entry.start, entry.total);
      best = best ? std::move(best) : std::optional(candidate(entry));
    } else if (const auto fitted = with_fit(entry)) {
      entries.push_back(*fitted);
      std::push_heap(entries.begin(), entries.end(), later);
    }
  }
  if (!chosen.empty()) {
    chosen.erase(chosen.begin());
  }
  return {std::move(best), std::move(chosen)};
}

Reason no_room(const Resources& resources, std::optional<Instant> next) {
  const std::string what = resources.gpus == 1 ? "no such GPU is free that long then"
                                               : "no node has " + std::to_string(resources.gpus) +
                                                     " such GPUs free that long then";
  return Reason{ReasonCode::NoCapacityNow,
                what + (next ? "; from " + utc_text(*next) + " on there is room"
                             : ", nor later in the book; ask for fewer GPUs or less time")};
}

}  // namespace

WindowSearch search_window(const State& state, const std::vector<ClassId>& classes,
                           const Resources& resources, const TimeWish& wish, Duration duration,
                           Instant now, std::size_t options) {
  Search search(state, resources, duration, now);
  search.add_pools(classes);
  std::vector<Instant> starts = starts_of(wish, duration);
  std::optional<Candidate> now_place;
  if (!starts.empty() && starts.front() == now) {
    starts.erase(starts.begin());
    auto place = cheapest_place(state, resources, now, duration, nullptr);
    if (auto* candidate = std::get_if<Candidate>(&place)) {
      now_place = std::move(*candidate);
    }
  }
  WindowSearch result;
  std::tie(result.best, result.others) = search.cheapest(starts, std::move(now_place), options);
  result.has_supply = search.has_supply();
  return result;
}

std::variant<Candidate, Reason> book_place(const State& state, const Resources& resources,
                                           const TimeWish& wish, Duration duration, Instant now) {
  auto matched = matching_classes(state, resources);
  if (auto* reason = std::get_if<Reason>(&matched)) {
    return std::move(*reason);
  }
  const auto& classes = std::get<std::vector<ClassId>>(matched);
  WindowSearch found = search_window(state, classes, resources, wish, duration, now, 0);
  if (found.best) {
    return std::move(*found.best);
  }
  if (!found.has_supply) {
    return Reason{ReasonCode::NoSupply, "no healthy GPU of this kind is listed now"};
  }
  Search search(state, resources, duration, now);
  search.add_pools(classes);
  const TimeWish later{StartKind::Cheapest,
                       std::max(wish.earliest, now + milliseconds(1)),
                       book_end(state, now),
                       {}};
  return no_room(resources, search.first_with_room(starts_of(later, duration)));
}

std::optional<NodeId> book_fit(const State& state, const PoolKey& key, const Resources& resources,
                               Interval span, Price owner_floor) {
  const auto fit = PoolRoom(state, key, resources).best(span, Money(), [&](Price floor) {
    return floor <= owner_floor ? std::optional(Money()) : std::nullopt;
  });
  return fit ? std::optional(fit->node) : std::nullopt;
}

std::uint64_t bookable_lanes(const NodeRecord& node, ClassId gpu_class, Interval span,
                             LeaseId except) {
  return healthy_lanes(node, gpu_class) &
         ~held_lanes(node, gpu_class, span.from, span.until, except);
}

}  // namespace bmgpu::core
