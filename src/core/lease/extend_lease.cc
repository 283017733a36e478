#include <algorithm>

#include "core/book/stays.h"
#include "core/handlers.h"
#include "core/ledger/charge.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"
#include "core/market/times.h"

namespace bmgpu::core {
namespace {

// Whether its GPUs, and CPU and memory beside them, stay free for it until `end`.
std::optional<Reason> check_gpus_after(const State& state, const Lease& lease, Instant end) {
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    const NodeRecord& node = state.nodes.at(rank.node);
    const std::uint64_t lanes = lanes_of(node, lease.gpu_class, rank.items);
    const auto taken = held_from(node, lease.gpu_class, lanes, lease.end, lease.id);
    if (taken && *taken < end) {
      return Reason{
          ReasonCode::GpusTakenAfter,
          *taken == lease.end
              ? "its GPUs are booked from its end on; the lease ends as planned"
              : "its GPUs are free until " + utc_text(*taken) + " only; extend it up to then"};
    }
    const Resources beside{lease.gpus, "", 0, rank.cpu_millis, rank.memory_mib, rank.scratch_mib};
    if (!fits_beside(node, beside, lease.end, end, lease.id)) {
      return Reason{ReasonCode::NodeResources,
                    "the CPU, memory or scratch beside its GPUs are booked after its end"};
    }
  }
  return std::nullopt;
}

std::optional<Reason> check_extension(const State& state, const Lease& lease,
                                      const ExtendLease& command) {
  if (command.by < Limits::kLeaseMin || command.by > Limits::kLeaseMax) {
    return Reason{ReasonCode::OutOfRange, "extend by 1 minute to 30 days"};
  }
  if (lease.state == LeaseState::Ending || lease.state == LeaseState::Cancelled) {
    return Reason{ReasonCode::AlreadyEnded, "the lease is ending and cannot be extended"};
  }
  if (lease.end + command.by - lease.start > Limits::kLeaseMax) {
    return Reason{ReasonCode::LeaseTooLong, "a lease lasts at most 30 days, extensions included"};
  }
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    if (state.nodes.at(rank.node).listing == NodeListing::Draining) {
      return Reason{ReasonCode::NodeDraining,
                    "its node is being drained: the lease runs to its end, but no longer"};
    }
  }
  return check_gpus_after(state, lease, lease.end + command.by);
}

// All prices of the lease up to `until`. New slots go on with the lease's age, and are priced as
// if its own GPUs were not taken: what a longer lease would pay for them now.
std::variant<std::vector<Price>, Reason> extended_prices(const State& state, const Lease& lease,
                                                         Instant until, Instant now) {
  std::vector<Price> prices = lease.slot_prices;
  const auto priced = std::ssize(prices);
  const Instant first_new = slot_start(slot_of(lease.start)) + kSlot * priced;
  if (until <= first_new) {
    return prices;
  }
  PriceRequest request{
      .gpus = lease.gpus, .now = now, .from = first_new, .until = until, .first_index = priced};
  const bool has_started = lease.state != LeaseState::Booked;
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    const NodeRecord& node = state.nodes.at(rank.node);
    request.owner_floor = std::max(request.owner_floor, node.owner_floor);
    if (has_started) {
      request.own_leased += std::ssize(rank.items);
      (node.owner == lease.tenant ? request.own_supply : request.own.leased) +=
          std::ssize(rank.items);
    }
  }
  const PoolKey key{lease.gpu_class, lease.site};
  const PoolRecord& pool = state.pools.at(key);
  if (pool.supply + request.own_supply == 0) {
    return Reason{ReasonCode::NoSupply,
                  "no healthy GPU of this kind is listed now, so more time has no price; try again "
                  "when its node is back"};
  }
  const std::vector<Price> added = lease_prices(state, key, pool, request);
  prices.insert(prices.end(), added.begin(), added.end());
  return prices;
}

// Whether [from, until) of the lease is within `limit`; else the reason with the price.
std::optional<Reason> above_limit(const Lease& lease, const std::vector<Price>& prices,
                                  Instant from, Instant until, Price limit) {
  const auto skipped = (slot_of(from) - slot_of(lease.start)).count();
  const std::vector<Price> part(prices.begin() + skipped, prices.end());
  if (within_limit(part, from, until, lease.gpus, limit)) {
    return std::nullopt;
  }
  return Reason{ReasonCode::PriceAboveLimit,
                "the extension costs " + per_hour(average_price(part, from, until, lease.gpus)) +
                    " per GPU-hour, above the limit of " + per_hour(limit)};
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const ExtendLease& command) {
  const auto waiting = state.waiting.find(command.order);
  if (waiting != state.waiting.end() && waiting->second.tenant == command.tenant) {
    return refused(ReasonCode::NoSuchObject, "the order still waits: it has no lease to extend");
  }
  const auto it = state.leases.find(LeaseId(command.order.value()));
  if (it == state.leases.end() || it->second.tenant != command.tenant) {
    return refused(ReasonCode::NoSuchObject, "there is no such order");
  }
  const Lease& lease = it->second;
  if (auto reason = check_price_limit(command.price_limit)) {
    return refused(std::move(*reason));
  }
  if (auto reason = check_extension(state, lease, command)) {
    return refused(std::move(*reason));
  }
  LeaseExtended event{lease.id,     lease.end + command.by, {}, state.policy.version,
                      lease.quoted, lease.price_limit};
  const Instant from = priced_until(lease.start, lease.end, lease.billed_min);
  const Instant until = priced_until(lease.start, event.end, lease.billed_min);
  auto prices = extended_prices(state, lease, until, stamp.now);
  if (auto* reason = std::get_if<Reason>(&prices)) {
    return refused(std::move(*reason));
  }
  event.slot_prices = std::get<std::vector<Price>>(std::move(prices));
  if (from < until) {
    const Price limit = command.price_limit.count() != 0 ? command.price_limit : lease.price_limit;
    if (auto reason = above_limit(lease, event.slot_prices, from, until, limit)) {
      return refused(std::move(*reason));
    }
    event.quoted += charge_between(event.slot_prices, lease.start, from, until);
    if (lease.price_limit.count() != 0) {
      event.price_limit = std::max(lease.price_limit, limit);
    }
  }
  Decision decision{{}, {}, OrderAnswer{lease.order, lease.id, std::nullopt}};
  decision.events.push_back(std::move(event));
  return decision;
}

}  // namespace bmgpu::core
