#include "core/book/start_booked.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/wide.h"
#include "core/book/stays.h"
#include "core/book/window.h"
#include "core/indexes.h"
#include "core/lease/lease_events.h"
#include "core/ledger/charge.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

constexpr int kTriesMax = 64;  // leases in one tick

const RankPlacement& place_of(const Lease& lease) { return lease.allocations.back().ranks.front(); }

std::string name_of(NodeId node) { return "node-" + std::to_string(node.value()); }

// What it needs, as an order would say it.
Resources needs(const Lease& lease) {
  const RankPlacement& rank = place_of(lease);
  return Resources{lease.gpus, "", 0, rank.cpu_millis, rank.memory_mib, rank.scratch_mib};
}

// Why it cannot start where it is; absent: it can.
std::optional<std::string> trouble(const State& state, const Lease& lease) {
  const RankPlacement& rank = place_of(lease);
  const NodeRecord& node = state.nodes.at(rank.node);
  if (!node.ready || node.lost) {
    return name_of(node.id) + (node.lost ? " is lost" : " is not ready");
  }
  const std::uint64_t lanes = lanes_of(node, lease.gpu_class, rank.items);
  if (__builtin_popcountll(lanes) != std::ssize(rank.items) ||
      (lanes & ~healthy_lanes(node, lease.gpu_class)) != 0) {
    return "a GPU of " + name_of(node.id) + " has failed";
  }
  if ((lanes & ~free_lanes(node, lease.gpu_class)) != 0) {
    return "a GPU of " + name_of(node.id) + " is not clean yet";
  }
  return std::nullopt;
}

LeaseMoved move_to(const State& state, const Lease& lease, const NodeRecord& node,
                   std::uint64_t lanes, Instant now, std::string why) {
  return LeaseMoved{
      lease.id, now, {place(state, node, lease.gpu_class, needs(lease), lanes)}, std::move(why)};
}

// Equal GPUs that are free from now until its end.
std::optional<LeaseMoved> move_now(const State& state, const Lease& lease, Instant now,
                                   const std::string& why) {
  const PoolKey key{lease.gpu_class, lease.site};
  const FreeNow free{now, lease.end, lease.id};
  const auto node =
      best_fit(state, key, state.pools.at(key), needs(lease), lease.owner_floor, free);
  if (!node) {
    return std::nullopt;
  }
  const NodeRecord& there = state.nodes.at(*node);
  return move_to(state, lease, there, lanes_free_now(there, lease.gpu_class, free), now, why);
}

// Equal GPUs that can be booked for its time: on the same node first.
std::optional<LeaseMoved> move_ahead(const State& state, const Lease& lease, Instant now) {
  const Interval span{lease.start, lease.end};
  const NodeRecord& here = state.nodes.at(place_of(lease).node);
  const std::uint64_t lanes = bookable_lanes(here, lease.gpu_class, span, lease.id);
  if (can_be_placed_on(here) && __builtin_popcountll(lanes) >= lease.gpus) {
    return move_to(state, lease, here, lanes, now, "a GPU of " + name_of(here.id) + " has failed");
  }
  const PoolKey key{lease.gpu_class, lease.site};
  const auto node = book_fit(state, key, needs(lease), span, lease.owner_floor);
  if (!node) {
    return std::nullopt;
  }
  const NodeRecord& there = state.nodes.at(*node);
  const std::string why =
      name_of(here.id) + (here.lost                               ? " is lost"
                          : here.listing == NodeListing::Draining ? " is being drained"
                                                                  : " has too few healthy GPUs");
  return move_to(state, lease, there, bookable_lanes(there, lease.gpu_class, span), now, why);
}

LeaseStarted start(const Stamp& stamp, const Lease& lease) {
  return LeaseStarted{lease.id, stamp.now,
                      lease.without_job
                          ? std::vector<Attempt>{}
                          : first_attempts(stamp, lease.allocations.back().ranks.size())};
}

std::vector<Event> try_start(const State& state, const Stamp& stamp, const Lease& lease,
                             const std::optional<std::string>& why_not) {
  if (!why_not) {
    return {start(stamp, lease)};
  }
  if (auto moved = move_now(state, lease, stamp.now, *why_not)) {
    return {std::move(*moved), start(stamp, lease)};
  }
  return {};
}

}  // namespace

std::vector<Event> start_or_delay(const State& state, const Stamp& stamp, const Lease& lease) {
  if (stamp.now >= lease.end) {
    return {end_unstarted(state, lease, stamp.now)};
  }
  const auto why_not = trouble(state, lease);
  std::vector<Event> events = try_start(state, stamp, lease, why_not);
  if (events.empty() && lease.delayed) {
    events.emplace_back(end_unstarted(state, lease, stamp.now));
  } else if (events.empty()) {
    events.emplace_back(LeaseDelayed{lease.id, stamp.now, *why_not});
  }
  return events;
}

LeaseEnded end_unstarted(const State& state, const Lease& lease, Instant now) {
  const auto why = trouble(state, lease);
  const std::string detail = why ? *why + ", and nothing equal was free; nothing is charged"
                                 : "the market did not run while " + name_of(place_of(lease).node) +
                                       " should have started it; nothing is charged";
  return end_lease(lease, EndReason::HostUnavailable, std::min(now, lease.end), std::nullopt,
                   detail);
}

std::vector<Event> help_one_booked(const State& state, const Stamp& stamp) {
  int tries = 0;
  for (const auto& [at, id] : state.delayed) {
    if (++tries > kTriesMax) {
      break;
    }
    const Lease& lease = state.leases.at(id);
    if (auto events = try_start(state, stamp, lease, trouble(state, lease)); !events.empty()) {
      return events;
    }
  }
  for (const auto& [at, id] : state.displaced) {
    if (++tries > 2 * kTriesMax) {
      break;
    }
    const Lease& lease = state.leases.at(id);
    if (!lease.delayed && lease.start > stamp.now) {
      if (auto moved = move_ahead(state, lease, stamp.now)) {
        return {std::move(*moved)};
      }
    }
  }
  return {};
}

Money cancel_fee(const State& state, const Lease& lease) {
  const RankPlacement& rank = place_of(lease);
  const auto found = state.nodes.find(rank.node);
  if (found == state.nodes.end() || lease.cancel_fee_permille == 0) {
    return Money();
  }
  const NodeRecord& node = found->second;
  const std::uint64_t lanes = lanes_of(node, lease.gpu_class, rank.items);
  const Instant until = priced_until(lease.start, lease.end, lease.billed_min);
  Wide sum = 0;  // of prices times GPUs
  for (Instant from = lease.start; from < until;) {
    const Instant part_end = std::min(until, slot_start(slot_of(from)) + kSlot);
    std::uint64_t taken = 0;
    for (const Stay& stay : node.stays) {
      if (stay.from < part_end && from < stay.until && stay.gpu_class == lease.gpu_class &&
          state.leases.at(stay.lease).tenant != lease.tenant) {
        taken |= stay.lanes & lanes;
      }
    }
    const Money part = charge_between(lease.slot_prices, lease.start, from, part_end);
    sum += Wide{part.count()} * (__builtin_popcountll(lanes) - __builtin_popcountll(taken));
    from = part_end;
  }
  const std::int64_t whole = lease.gpus * 1000;
  const Wide fee = (sum * lease.cancel_fee_permille + whole - 1) / whole;
  return std::min(Money(static_cast<std::int64_t>(fee)), lease.quoted);
}

LeaseEnded settle_cancelled(const State& state, const Lease& lease, Instant at) {
  LeaseEnded ended = end_lease(lease, EndReason::Cancelled, at, std::nullopt, "");
  ended.fee = cancel_fee(state, lease);
  ended.charged = ended.fee;
  return ended;
}

}  // namespace bmgpu::core
