// Leases that are booked ahead, as plainly as possible.
#include <algorithm>
#include <tuple>

#include "core/property/naive_market.h"

namespace bmgpu::core {
namespace {

bool has(const std::vector<std::string>& uuids, const std::string& uuid) {
  return std::find(uuids.begin(), uuids.end(), uuid) != uuids.end();
}

std::string text(const char* what, OrderId id) {
  return std::string(what) + " " + std::to_string(id.value());
}

}  // namespace

bool NaiveMarket::something_waits() const {
  return !waiting_.empty() || std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
    return entry.second.delayed || displaced(entry.second);
  });
}

bool NaiveMarket::has_bookings(NodeId node) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
    return entry.second.node == node && entry.second.booked;
  });
}

std::vector<std::string> NaiveMarket::bookable(const NaiveNode& node, Instant from, Instant until,
                                               OrderId except) const {
  std::vector<std::string> uuids;
  for (const NaiveGpu& gpu : node.gpus) {
    const bool is_taken = std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
      const NaiveLease& lease = entry.second;
      return lease.id != except && !lease.cancelled && lease.start < until && from < lease.end &&
             has(lease.uuids, gpu.uuid);
    });
    if (!is_taken && gpu.state != GpuState::Failed) {
      uuids.push_back(gpu.uuid);
    }
  }
  return uuids;
}

std::vector<std::string> NaiveMarket::free_now(const NaiveNode& node, Instant now, Instant until,
                                               OrderId except) const {
  std::vector<std::string> uuids = bookable(node, now, until, except);
  for (const NaiveGpu& gpu : node.gpus) {
    if (gpu.state != GpuState::Free) {
      std::erase(uuids, gpu.uuid);
    }
  }
  return uuids;
}

bool NaiveMarket::room_beside(const NaiveNode& node, NodeCapacity want, Instant from, Instant until,
                              OrderId except) const {
  std::vector<Instant> moments = {from};
  for (const auto& [id, lease] : leases_) {
    if (from < lease.start && lease.start < until) {
      moments.push_back(lease.start);
    }
  }
  return std::all_of(moments.begin(), moments.end(), [&](Instant at) {
    NodeCapacity sum = want;
    for (const auto& [id, lease] : leases_) {
      if (lease.node == node.id && id != except && !lease.cancelled && lease.start <= at &&
          at < lease.end) {
        sum.cpu_millis += lease.takes.cpu_millis;
        sum.memory_mib += lease.takes.memory_mib;
        sum.scratch_mib += lease.takes.scratch_mib;
      }
    }
    return sum.cpu_millis <= node.capacity.cpu_millis &&
           sum.memory_mib <= node.capacity.memory_mib &&
           sum.scratch_mib <= node.capacity.scratch_mib;
  });
}

Instant NaiveMarket::book_end(Instant now) const {
  const SlotNumber first = open_slot_ == SlotNumber() ? slot_of(now) : open_slot_;
  return slot_start(first) + hours(14 * 24);
}

bool NaiveMarket::can_be(const TimeWish& wish, Duration duration, Instant now, Instant book_end) {
  if (wish.start == StartKind::At) {
    return wish.earliest >= now && wish.earliest + duration <= book_end;
  }
  const Instant earliest = std::max(wish.earliest, now);
  const bool has_room = std::any_of(wish.allowed.begin(), wish.allowed.end(), [&](auto allowed) {
    return std::min(allowed.until, wish.deadline) - std::max(allowed.from, earliest) >= duration;
  });
  return wish.deadline <= book_end && wish.deadline - earliest >= duration &&
         (wish.allowed.empty() || has_room);
}

std::variant<NaiveMarket::Place, ReasonCode> NaiveMarket::cheapest_window(
    Instant now, const Resources& resources, const TimeWish& wish, Duration duration) const {
  const std::vector<std::string> matching = models(resources);
  using Rank = std::tuple<Money, Instant, std::size_t, SiteId, std::int64_t, NodeId>;
  std::optional<std::pair<Rank, Place>> best;
  const auto offer = [&](const Rank& rank, const Place& place) {
    if (!best || rank < best->first) {
      best = {rank, place};
    }
  };
  bool has_supply = false;
  for (const auto& [id, node] : nodes_) {
    const auto model = std::find(matching.begin(), matching.end(), node.model);
    const Pool pool = look_at(PoolName{node.model, node.site});
    if (model == matching.end()) {
      continue;
    }
    has_supply = has_supply || pool.supply > 0 || pool.owners_use_some;
    if (!placeable(node) || pool.supply == 0) {
      continue;
    }
    const Instant earliest = std::max(wish.earliest, now);
    const auto windows =
        wish.allowed.empty() ? std::vector<Interval>{{earliest, wish.deadline}} : wish.allowed;
    for (const Interval& window : windows) {
      const Instant from = std::max(window.from, earliest);
      const Instant until =
          wish.start == StartKind::At ? from + duration : std::min(window.until, wish.deadline);
      for (Instant start = from; start + duration <= until;
           start = slot_start(slot_of(start)) + kSlot) {
        const auto free = std::ssize(bookable(node, start, start + duration, OrderId()));
        if (start == now || free < resources.gpus ||
            !room_beside(node, wants(node, resources), start, start + duration, OrderId())) {
          continue;
        }
        const Instant end = priced_end(start, start + duration);
        Leased terms{id, {}, prices(pool, resources.gpus, now, start, end, 0, node.floor), Money()};
        terms.quoted = cost(terms.prices, start, start, end);
        offer(Rank{terms.quoted, start, static_cast<std::size_t>(model - matching.begin()),
                   node.site, free, id},
              Place{PoolName{node.model, node.site}, id, terms, start});
      }
    }
  }
  const bool may_now = std::max(wish.earliest, now) == now &&
                       (wish.allowed.empty() || wish.start == StartKind::At ||
                        std::any_of(wish.allowed.begin(), wish.allowed.end(), [&](auto allowed) {
                          return allowed.from <= now && now + duration <= allowed.until;
                        }));
  const auto here = cheapest(now, resources, duration, nullptr);
  if (const auto* place = std::get_if<Place>(&here); may_now && place != nullptr) {
    offer(Rank{place->terms.quoted, now, 0, SiteId(), 0, NodeId()}, *place);
  }
  if (best) {
    return best->second;
  }
  return has_supply ? ReasonCode::NoCapacityNow : ReasonCode::NoSupply;
}

Outcome NaiveMarket::book(Instant now, const PlaceOrder& command, NaiveOrder order) {
  TimeWish wish = command.wish;
  if (!can_be(wish, order.duration, now, book_end(now))) {
    return Says{ReasonCode::OutOfRange};
  }
  wish.earliest = std::max(wish.earliest, now);
  std::variant<Place, ReasonCode> found = ReasonCode::NoCapacityNow;
  const bool is_behind = review_ && next(now).has_value();
  if (is_behind && wish.start == StartKind::Cheapest) {
    wish.earliest = std::max(wish.earliest, slot_start(slot_of(now)) + kSlot);
  }
  if (!is_behind || wish.earliest > now) {
    found = cheapest_window(now, order.resources, wish, order.duration);
  }
  if (const auto* place = std::get_if<Place>(&found)) {
    if (within(place->terms.prices, place->start, place->start,
               priced_end(place->start, place->start + order.duration), order.resources.gpus,
               order.limit)) {
      return grant(now, order, *place);
    }
    found = ReasonCode::PriceAboveLimit;
  }
  const auto where = home(order.resources);
  const auto* never = std::get_if<ReasonCode>(&where);
  return Says{never != nullptr ? *never : std::get<ReasonCode>(found)};
}

bool NaiveMarket::displaced(const NaiveLease& lease) const {
  const NaiveNode& node = nodes_.at(lease.node);
  return lease.booked && (node.lost || node.draining ||
                          std::any_of(node.gpus.begin(), node.gpus.end(), [&](const NaiveGpu& gpu) {
                            return gpu.state == GpuState::Failed && has(lease.uuids, gpu.uuid);
                          }));
}

bool NaiveMarket::ready_to_start(const NaiveLease& lease) const {
  const NaiveNode& node = nodes_.at(lease.node);
  return node.ready && !node.lost &&
         std::all_of(node.gpus.begin(), node.gpus.end(), [&](const NaiveGpu& gpu) {
           return gpu.state == GpuState::Free || !has(lease.uuids, gpu.uuid);
         });
}

// Where it is, or on equal GPUs that are ready; false: nowhere.
bool NaiveMarket::start(Instant now, NaiveLease& lease) {
  if (!ready_to_start(lease)) {
    const NaiveNode& here = nodes_.at(lease.node);
    using Rank = std::tuple<std::int64_t, bool, NodeId>;
    std::optional<Rank> best;
    for (const auto& [id, node] : nodes_) {
      const auto free = free_now(node, now, lease.end, lease.id);
      const NodeCapacity in_use = used(id);
      const bool has_room =
          in_use.cpu_millis + lease.takes.cpu_millis <= node.capacity.cpu_millis &&
          in_use.memory_mib + lease.takes.memory_mib <= node.capacity.memory_mib &&
          in_use.scratch_mib + lease.takes.scratch_mib <= node.capacity.scratch_mib;
      if (!placeable(node) || node.model != here.model || node.site != here.site ||
          node.floor > lease.floor || !has_room || free.size() < lease.uuids.size() ||
          (has_bookings(id) && !room_beside(node, lease.takes, now, lease.end, lease.id))) {
        continue;
      }
      const bool is_idle = std::none_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
        return entry.second.node == id && !entry.second.booked && !entry.second.cancelled;
      });
      const Rank rank{free_gpus(node), is_idle, id};
      best = !best || rank < *best ? rank : *best;
    }
    if (!best) {
      return false;
    }
    const std::size_t gpus = lease.uuids.size();
    lease.uuids = free_now(nodes_.at(std::get<NodeId>(*best)), now, lease.end, lease.id);
    lease.uuids.resize(gpus);
    lease.node = std::get<NodeId>(*best);
    booked_events_.push_back(text("moved", lease.id));
    changed();
  }
  for (NaiveGpu& gpu : nodes_.at(lease.node).gpus) {
    if (has(lease.uuids, gpu.uuid)) {
      gpu.state = GpuState::Leased;
      gpu.held_by = lease.id;
    }
  }
  lease.booked = lease.delayed = false;
  lease.started = now;
  booked_events_.push_back(text("started", lease.id));
  review_ = review_ && something_waits();
  return true;
}

bool NaiveMarket::move_ahead(NaiveLease& lease) {
  const NaiveNode& here = nodes_.at(lease.node);
  const std::size_t gpus = lease.uuids.size();
  std::vector<std::string> uuids = bookable(here, lease.start, lease.end, lease.id);
  if (placeable(here) && uuids.size() >= gpus) {
    uuids.resize(gpus);
    lease.uuids = uuids;
  } else {
    std::optional<std::pair<std::size_t, NodeId>> best;
    for (const auto& [id, node] : nodes_) {
      const std::size_t free = bookable(node, lease.start, lease.end, OrderId()).size();
      if (placeable(node) && node.model == here.model && node.site == here.site &&
          node.floor <= lease.floor && free >= gpus &&
          room_beside(node, lease.takes, lease.start, lease.end, OrderId()) &&
          (!best || std::pair(free, id) < *best)) {
        best = {free, id};
      }
    }
    if (!best) {
      return false;
    }
    lease.uuids = bookable(nodes_.at(best->second), lease.start, lease.end, OrderId());
    lease.uuids.resize(gpus);
    lease.node = best->second;
  }
  booked_events_.push_back(text("moved", lease.id));
  changed();
  return true;
}

void NaiveMarket::start_or_delay(Instant now, OrderId id) {
  NaiveLease& lease = leases_.at(id);
  if (now < lease.end && start(now, lease)) {
    return;
  }
  if (now < lease.end && !lease.delayed) {
    lease.delayed = true;
    booked_events_.push_back(text("delayed", id));
    return;
  }
  leases_.erase(id);
  booked_events_.push_back(text("ended", id) + " charged 0");
  changed();
}

Billed NaiveMarket::give_back(OrderId id, Money fee) {
  leases_.erase(id);
  changed();
  return Billed{EndReason::Cancelled, Duration(), fee};
}

// A tenth of the price of what no other tenant has taken since.
Money NaiveMarket::fee_of(const NaiveLease& lease) const {
  if (lease.fee_waived) {
    return {};
  }
  const NaiveNode& node = nodes_.at(lease.node);
  const Instant until = priced_end(lease.start, lease.end);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < lease.prices.size(); ++i) {
    const Instant opens = slot_start(slot_of(lease.start)) + kSlot * static_cast<std::int64_t>(i);
    const Instant from = std::max(opens, lease.start);
    const Instant end = std::min(opens + kSlot, until);
    std::int64_t left = std::ssize(lease.uuids);
    for (const std::string& uuid : lease.uuids) {
      left -= std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
        const NaiveLease& other = entry.second;
        return other.node == node.id && !other.cancelled && other.tenant != lease.tenant &&
               other.start < end && from < other.end && has(other.uuids, uuid);
      });
    }
    sum += charge(lease.prices[i], end - from).count() * left;
  }
  const std::int64_t whole = std::ssize(lease.uuids) * 10;
  return std::min(lease.quoted, Money((sum + whole - 1) / whole));
}

// The first thing that is due, done; false: nothing is. At one time: the slot's end, leases,
// orders, then supply, each by id.
bool NaiveMarket::one_due(Instant now) {
  using Due = std::tuple<Instant, int, std::uint64_t>;
  Due first{slot_start(open_slot_) + kSlot, 0, 0};
  for (const auto& [id, lease] : leases_) {
    const Instant prepared_by = std::min(lease.end, lease.started + minutes(5));
    const Instant late = std::min(lease.end, lease.start + kNaiveTurnaround);
    const Instant at = lease.cancelled || (lease.booked && !lease.delayed) ? lease.start
                       : lease.booked                                      ? late
                       : lease.running                                     ? lease.end
                                                                           : prepared_by;
    if (!lease.ending) {
      first = std::min(first, Due{at, 1, id.value()});
    }
  }
  for (const auto& [id, order] : waiting_) {
    first = std::min(first, Due{order.placed + hours(24), 2, id.value()});
  }
  for (const auto& [id, node] : nodes_) {
    if (node.draining && !node.left_supply) {
      first = std::min(first, Due{node.drained + hours(24), 3, id.value()});
    }
  }
  const auto& [at, kind, id] = first;
  if (at > now) {
    return false;
  }
  if (kind == 0) {
    close_slot();
  } else if (kind == 1) {
    NaiveLease& lease = leases_.at(OrderId(id));
    if (lease.cancelled) {
      const Billed bill = give_back(lease.id, fee_of(lease));
      booked_events_.push_back(text("ended", OrderId(id)) + " charged " +
                               std::to_string(bill.charged.count()));
    } else if (lease.booked) {
      start_or_delay(now, lease.id);
    } else {
      lease.ending = lease.running ? EndReason::TimeUp : EndReason::PreparationTimeout;
      lease.ending_since = at;
    }
  } else if (kind == 2) {
    waiting_.erase(OrderId(id));
    changed();
  } else {
    nodes_.at(NodeId(id)).left_supply = true;
    changed();
  }
  return true;
}

// A late lease starts, or a displaced one moves; false: none can.
bool NaiveMarket::help_one(Instant now) {
  std::vector<std::pair<Instant, OrderId>> order;
  for (const auto& [id, lease] : leases_) {
    order.emplace_back(lease.start, id);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [at, id] : order) {
    NaiveLease& lease = leases_.at(id);
    if (lease.delayed && start(now, lease)) {
      return true;
    }
  }
  for (const auto& [at, id] : order) {
    NaiveLease& lease = leases_.at(id);
    if (displaced(lease) && !lease.delayed && lease.start > now && move_ahead(lease)) {
      return true;
    }
  }
  return false;
}

}  // namespace bmgpu::core
