// Best fit. A pool lists its nodes by the number of their free GPUs; the first list with enough,
// from the fullest node on, holds the best fit. Inside a list nodes in use come first, then ids.
// Cost: one set lookup per list unless CPU, memory or scratch do not fit.
#include "core/placement/placement.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/wide.h"
#include "core/book/stays.h"
#include "core/ledger/charge.h"
#include "core/market/pricing.h"
#include "core/market/times.h"
#include "core/market/words.h"

namespace bmgpu::core {
namespace {

std::int64_t share(std::int64_t asked, std::int64_t whole, std::int64_t gpus,
                   std::int64_t gpus_of_node) {
  if (asked > 0) {
    return asked;
  }
  return static_cast<std::int64_t>(Wide{whole} * gpus / std::max<std::int64_t>(gpus_of_node, 1));
}

bool fits(const NodeRecord& node, const NodeCapacity& used, const Resources& resources) {
  const NodeCapacity want = share_of_capacity(node, resources);
  return used.cpu_millis + want.cpu_millis <= node.capacity.cpu_millis &&
         used.memory_mib + want.memory_mib <= node.capacity.memory_mib &&
         used.scratch_mib + want.scratch_mib <= node.capacity.scratch_mib;
}

// Whether nothing that is booked on the node is in the way.
bool stays_free(const NodeRecord& node, ClassId gpu_class, const Resources& resources,
                const FreeNow& free) {
  return node.booked == 0 ||
         (__builtin_popcountll(lanes_free_now(node, gpu_class, free)) >= resources.gpus &&
          fits_beside(node, resources, free.now, free.until, free.except));
}

// How good a fit is: fewest free GPUs, then in use, then id.
using FitRank = std::tuple<std::size_t, bool, NodeId>;

std::optional<FitRank> best_in(const State& state, ClassId gpu_class, const FreeNodes& lists,
                               const Resources& resources, const FreeNow& free_for) {
  for (auto free = static_cast<std::size_t>(resources.gpus); free < lists.size(); ++free) {
    for (const auto& [idle, id] : lists[free]) {
      const NodeRecord& node = state.nodes.at(id);
      if (fits(node, node.used, resources) && stays_free(node, gpu_class, resources, free_for)) {
        return FitRank{free, idle, id};
      }
    }
  }
  return std::nullopt;
}

// GPUs of the order itself that the pool's demand counts while it waits.
std::int64_t own_waiting(const PoolKey& key, const PoolRecord& pool, const Order* waiting) {
  if (waiting == nullptr || PoolKey{waiting->gpu_class, waiting->site} != key) {
    return 0;
  }
  const Price limit = waiting->price_limit;
  return limit.count() == 0 || limit >= pool.last_price ? waiting->resources.gpus : 0;
}

// Whether some node of the pool, empty and healthy, would hold it.
bool could_ever_hold(const State& state, const PoolRecord& pool, const Resources& resources) {
  for (auto size = pool.nodes_by_size.lower_bound(resources.gpus); size != pool.nodes_by_size.end();
       ++size) {
    for (const NodeId id : size->second) {
      if (fits(state.nodes.at(id), NodeCapacity{}, resources)) {
        return true;
      }
    }
  }
  return false;
}

template <typename Visit>  // visit(PoolKey, PoolRecord)
void for_each_pool(const State& state, const std::vector<ClassId>& classes, Visit visit) {
  for (const ClassId id : classes) {
    for (auto it = state.pools.lower_bound(PoolKey{id, SiteId()});
         it != state.pools.end() && it->first.gpu_class == id; ++it) {
      visit(it->first, it->second);
    }
  }
}

Reason why_never(const State& state, const std::vector<ClassId>& classes,
                 const Resources& resources) {
  std::int64_t largest = 0;
  for_each_pool(state, classes, [&](const PoolKey&, const PoolRecord& pool) {
    if (!pool.nodes_by_size.empty()) {
      largest = std::max(largest, pool.nodes_by_size.rbegin()->first);
    }
  });
  if (largest == 0) {
    return {ReasonCode::NoSupply, "no node has such GPUs any more"};
  }
  if (largest < resources.gpus) {
    return {ReasonCode::TooManyGpus, "no node has " + std::to_string(resources.gpus) +
                                         " such GPUs; the largest has " + std::to_string(largest)};
  }
  return {ReasonCode::NodeResources,
          "no node with enough such GPUs has that much CPU, memory or scratch; ask for less"};
}

// The latest end of a lease of these GPUs that starts now; `free.now` if there is none.
Instant latest_end(const State& state, const NodeRecord& node, ClassId gpu_class, std::int64_t gpus,
                   const FreeNow& free) {
  std::vector<Instant> ends;  // of each GPU
  const std::uint64_t lanes = free_lanes(node, gpu_class);
  for (int lane = 0; lane < 64; ++lane) {
    const std::uint64_t mask = std::uint64_t{1} << lane;
    if ((lanes & mask) != 0) {
      const auto held = held_from(node, gpu_class, mask, free.now, free.except);
      ends.push_back(std::min(held ? *held - state.policy.turnaround : free.until, free.until));
    }
  }
  std::sort(ends.rbegin(), ends.rend());
  return std::ssize(ends) >= gpus ? ends[static_cast<std::size_t>(gpus - 1)] : free.now;
}

Reason booked_before(Instant until, Instant now) {
  return {ReasonCode::NoCapacityNow,
          until - now < Limits::kLeaseMin
              ? "such GPUs are free now, but booked for others soon"
              : "such GPUs are free now, but booked for others later: a lease that ends by " +
                    utc_text(until) + " would fit"};
}

Reason why_not_now(const State& state, const std::vector<ClassId>& classes,
                   const Resources& resources, const FreeNow& free_for) {
  bool has_supply = false;
  bool has_gpus = false;
  bool is_booked = false;
  Instant latest = free_for.now;
  for_each_pool(state, classes, [&](const PoolKey& key, const PoolRecord& pool) {
    const bool owners_use_some = pool.gpus_leased > pool.demand_leased;
    has_supply = has_supply || pool.supply > 0 || owners_use_some;
    for (const auto& [floor, lists] : pool.free_by_floor) {
      for (auto free = static_cast<std::size_t>(resources.gpus); free < lists.size(); ++free) {
        has_gpus = has_gpus || !lists[free].empty();
        for (const auto& [idle, id] : lists[free]) {
          const NodeRecord& node = state.nodes.at(id);
          if (node.booked > 0 && !stays_free(node, key.gpu_class, resources, free_for)) {
            is_booked = true;
            latest =
                std::max(latest, latest_end(state, node, key.gpu_class, resources.gpus, free_for));
          }
        }
      }
    }
  });
  if (!has_supply) {
    return {ReasonCode::NoSupply, "no healthy GPU of this kind is listed now"};
  }
  if (is_booked) {
    return booked_before(latest, free_for.now);
  }
  if (has_gpus) {
    return {ReasonCode::NodeResources,
            "GPUs are free, but not the CPU, memory or scratch beside them; ask for less of it or "
            "wait"};
  }
  return {ReasonCode::NoCapacityNow, resources.gpus == 1
                                         ? "no such GPU is free now"
                                         : "no node has " + std::to_string(resources.gpus) +
                                               " such GPUs free now; fewer GPUs may start sooner"};
}

struct Offer {
  Candidate candidate;
  FitRank rank;
};
auto order_of(const Offer& offer) {
  return std::tie(offer.candidate.total, offer.candidate.pool, offer.rank);
}

}  // namespace

NodeCapacity share_of_capacity(const NodeRecord& node, const Resources& resources) {
  const auto part = [&](std::int64_t asked, std::int64_t whole) {
    return share(asked, whole, resources.gpus, node.gpus_named);
  };
  return NodeCapacity{part(resources.cpu_millis, node.capacity.cpu_millis),
                      part(resources.memory_mib, node.capacity.memory_mib),
                      part(resources.scratch_mib, node.capacity.scratch_mib)};
}

std::variant<std::vector<ClassId>, Reason> matching_classes(const State& state,
                                                            const Resources& resources) {
  std::vector<ClassId> classes;
  bool words_match_some = false;
  std::string known;
  for (const auto& [id, record] : state.classes) {
    const bool named = all_words_in(resources.gpu_words, record.words);
    words_match_some = words_match_some || named;
    if (named && record.spec.memory_mib >= resources.gpu_memory_mib_min) {
      classes.push_back(id);
    }
  }
  if (!classes.empty()) {
    return classes;
  }
  if (words_match_some) {
    return Reason{
        ReasonCode::NotEnoughMemory,
        "no such GPU has " + std::to_string(resources.gpu_memory_mib_min) + " MiB of memory"};
  }
  std::set<std::string> models;
  for (const auto& [id, record] : state.classes) {
    models.insert(record.spec.model);
  }
  for (const std::string& model : models) {
    known += (known.empty() ? "" : ", ") + model;
  }
  return Reason{ReasonCode::UnknownGpu, known.empty() ? "no node has joined yet, so there is no GPU"
                                                      : "no GPU is named '" + resources.gpu_words +
                                                            "'; there are: " + known};
}

std::variant<PoolKey, Reason> home_pool(const State& state, const Resources& resources) {
  auto matched = matching_classes(state, resources);
  if (auto* reason = std::get_if<Reason>(&matched)) {
    return std::move(*reason);
  }
  const auto& classes = std::get<std::vector<ClassId>>(matched);
  std::optional<PoolKey> home;
  Price home_price;
  for_each_pool(state, classes, [&](const PoolKey& key, const PoolRecord& pool) {
    if ((!home || pool.last_price < home_price) && could_ever_hold(state, pool, resources)) {
      home = key;
      home_price = pool.last_price;
    }
  });
  if (!home) {
    return why_never(state, classes, resources);
  }
  return *home;
}

FreeNow free_now(const State& state, Instant now, Duration duration) {
  return FreeNow{now, now + duration + state.policy.turnaround};
}

std::uint64_t lanes_free_now(const NodeRecord& node, ClassId gpu_class, const FreeNow& free) {
  return free_lanes(node, gpu_class) &
         ~held_lanes(node, gpu_class, free.now, free.until, free.except);
}

bool fits_beside(const NodeRecord& node, const Resources& resources, Instant from, Instant until,
                 LeaseId except) {
  return fits(node, peak_use(node, from, until, except), resources);
}

std::optional<NodeId> best_fit(const State& state, const PoolKey& key, const PoolRecord& pool,
                               const Resources& resources, Price owner_floor, const FreeNow& free) {
  std::optional<FitRank> best;
  for (const auto& [floor, lists] : pool.free_by_floor) {
    if (floor > owner_floor) {
      break;
    }
    const auto rank = best_in(state, key.gpu_class, lists, resources, free);
    if (rank && (!best || *rank < *best)) {
      best = rank;
    }
  }
  return best ? std::optional(std::get<NodeId>(*best)) : std::nullopt;
}

std::variant<Candidate, Reason> cheapest_place(const State& state, const Resources& resources,
                                               Instant now, Duration duration,
                                               const Order* waiting) {
  auto matched = matching_classes(state, resources);
  if (auto* reason = std::get_if<Reason>(&matched)) {
    return std::move(*reason);
  }
  const auto& classes = std::get<std::vector<ClassId>>(matched);
  const Instant until = priced_until(now, now + duration, state.policy.billed_min);
  const FreeNow free = free_now(state, now, duration);
  std::optional<Offer> best;
  for_each_pool(state, classes, [&](const PoolKey& key, const PoolRecord& pool) {
    if (pool.supply == 0) {
      return;
    }
    PriceRequest request{.gpus = resources.gpus,
                         .now = now,
                         .from = now,
                         .until = until,
                         .own = {.waiting = own_waiting(key, pool, waiting)}};
    for (const auto& [floor, lists] : pool.free_by_floor) {
      const auto rank = best_in(state, key.gpu_class, lists, resources, free);
      if (!rank) {
        continue;
      }
      request.owner_floor = floor;
      std::vector<Price> prices = lease_prices(state, key, pool, request);
      const Money total = charge_between(prices, now, now, until);
      Offer offer{Candidate{key, std::get<NodeId>(*rank), now, floor, std::move(prices), total},
                  *rank};
      if (!best || order_of(offer) < order_of(*best)) {
        best = std::move(offer);
      }
    }
  });
  if (!best) {
    return why_not_now(state, classes, resources, free);
  }
  return std::move(best->candidate);
}

RankPlacement place(const State& state, const NodeRecord& node, ClassId gpu_class,
                    const Resources& resources, std::uint64_t lanes) {
  const NodeCapacity capacity = share_of_capacity(node, resources);
  RankPlacement rank{node.id, {}, capacity.cpu_millis, capacity.memory_mib, capacity.scratch_mib};
  const std::int64_t memory_mib = state.classes.at(gpu_class).spec.memory_mib;
  rank.items.reserve(static_cast<std::size_t>(resources.gpus));
  for (const GpuRecord& gpu : node.gpus) {
    if (std::ssize(rank.items) == resources.gpus) {
      break;
    }
    if (gpu.named && gpu.gpu_class == gpu_class) {
      if ((lanes & 1) != 0) {
        rank.items.push_back(Item{gpu.id, 1000, memory_mib});
      }
      lanes >>= 1;
    }
  }
  check(std::ssize(rank.items) == resources.gpus, "place: too few free GPUs");
  return rank;
}

}  // namespace bmgpu::core
