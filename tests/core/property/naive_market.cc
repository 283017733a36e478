#include "core/property/naive_market.h"

#include <algorithm>
#include <tuple>

#include "core/market/pricing.h"

namespace bmgpu::core {
NaiveMarket::NaiveMarket() : weights_(slot_weights(policy_.duration_decay_permille)) {}

void NaiveMarket::add_node(NaiveNode node) {
  if (std::find(known_models_.begin(), known_models_.end(), node.model) == known_models_.end()) {
    known_models_.push_back(node.model);
  }
  last_prices_.try_emplace(
      PoolName{node.model, node.site},
      slot_price(policy_, weights_, PriceInputs{kNaiveBase, 1, 1, 0, Price()}, 0));
  nodes_.emplace(node.id, std::move(node));
  changed();
}

std::vector<NaiveNode> NaiveMarket::nodes() const {
  std::vector<NaiveNode> all;
  for (const auto& [id, node] : nodes_) {
    all.push_back(node);
  }
  return all;
}

Outcome NaiveMarket::set_ready(NodeId id, bool ready) {
  NaiveNode& node = nodes_.at(id);
  if (node.ready != ready || (ready && node.lost)) {
    node.ready = ready;
    node.lost = node.lost && !ready;
    changed();
  }
  return Says{};
}

Outcome NaiveMarket::set_draining(Instant now, NodeId id, bool draining) {
  NaiveNode& node = nodes_.at(id);
  if (node.draining != draining) {
    node.draining = draining;
    node.drained = now;
    node.left_supply = false;
    changed();
  }
  return Says{};
}

Outcome NaiveMarket::replace(NodeId id) {
  NaiveNode& node = nodes_.at(id);
  const bool has_lease = std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
    return entry.second.node == id && !entry.second.cancelled;
  });
  if (node.ready || has_lease) {
    return Says{ReasonCode::NodeInUse};
  }
  for (auto& [order, lease] : leases_) {
    lease.fee_waived = lease.fee_waived || lease.node == id;
  }
  node.lost = false;
  node.draining = false;
  node.left_supply = false;
  for (NaiveGpu& gpu : node.gpus) {
    gpu.state = GpuState::Sanitizing;
  }
  changed();
  return Says{};
}

Leased NaiveMarket::grant(Instant now, const NaiveOrder& order, const Place& place) {
  NaiveNode& node = nodes_.at(place.node);
  Leased terms = place.terms;
  const bool is_later = place.start > now;
  const Instant end = place.start + order.duration;
  terms.uuids = is_later ? bookable(node, place.start, end, OrderId())
                         : free_now(node, now, end + kNaiveTurnaround, OrderId());
  terms.uuids.resize(static_cast<std::size_t>(order.resources.gpus));
  NaiveLease lease{
      order.id,    order.tenant, place.node,   terms.uuids,  wants(node, order.resources),
      place.start, end,          terms.prices, terms.quoted, order.limit};
  lease.booked = lease.was_booked = is_later;
  lease.started = place.start;
  lease.floor = node.floor;
  if (!is_later) {
    for (NaiveGpu& gpu : node.gpus) {
      if (std::find(terms.uuids.begin(), terms.uuids.end(), gpu.uuid) != terms.uuids.end()) {
        gpu.state = GpuState::Leased;
        gpu.held_by = order.id;
      }
    }
  }
  leases_.emplace(order.id, lease);
  if (waiting_.erase(order.id) > 0) {
    review_ = review_ && something_waits();
  }
  return terms;
}

std::optional<std::pair<OrderId, NaiveMarket::Place>> NaiveMarket::next(Instant now) const {
  std::vector<const NaiveOrder*> queue;
  for (const auto& [id, order] : waiting_) {
    queue.push_back(&order);
  }
  std::sort(queue.begin(), queue.end(), [](const NaiveOrder* a, const NaiveOrder* b) {
    return std::tuple(a->duration * a->resources.gpus, a->placed, a->id) <
           std::tuple(b->duration * b->resources.gpus, b->placed, b->id);
  });
  for (const NaiveOrder* order : queue) {
    const auto found = cheapest(now, order->resources, order->duration, order);
    const auto* place = std::get_if<Place>(&found);
    if (place != nullptr &&
        within(place->terms.prices, now, now, priced_end(now, now + order->duration),
               order->resources.gpus, order->limit)) {
      return std::pair(order->id, *place);
    }
  }
  return std::nullopt;
}

Outcome NaiveMarket::place(Instant now, const PlaceOrder& command, OrderId id) {
  NaiveOrder order{
      id, command.tenant, command.resources, command.duration, command.price_limit, now, {}};
  if (command.wish.start != StartKind::Now) {
    return book(now, command, order);
  }
  std::variant<Place, ReasonCode> found = ReasonCode::NoCapacityNow;
  if (!review_ || !next(now)) {
    found = models(order.resources).empty()
                ? std::variant<Place, ReasonCode>(ReasonCode::UnknownGpu)
                : cheapest(now, order.resources, order.duration, nullptr);
  }
  if (const auto* place = std::get_if<Place>(&found)) {
    if (within(place->terms.prices, now, now, priced_end(now, now + order.duration),
               order.resources.gpus, order.limit)) {
      return grant(now, order, *place);
    }
    found = ReasonCode::PriceAboveLimit;
  }
  const auto where = home(order.resources);
  if (const auto* never = std::get_if<ReasonCode>(&where)) {
    return Says{*never};
  }
  const ReasonCode code = std::get<ReasonCode>(found);
  if (command.refuse_if_unavailable) {
    return Says{code};
  }
  order.home = std::get<PoolName>(where);
  waiting_.emplace(id, order);
  return Waits{code};
}

Outcome NaiveMarket::quote(Instant now, const RequestQuote& command) const {
  const bool is_window = command.wish.start != StartKind::Now;
  if (is_window && !can_be(command.wish, command.duration, now, book_end(now))) {
    return Says{ReasonCode::OutOfRange};
  }
  const auto where = home(command.resources);
  if (const auto* never = std::get_if<ReasonCode>(&where)) {
    return Says{*never};
  }
  const auto found = is_window
                         ? cheapest_window(now, command.resources, command.wish, command.duration)
                         : cheapest(now, command.resources, command.duration, nullptr);
  if (const auto* code = std::get_if<ReasonCode>(&found)) {
    return Says{*code};
  }
  const Leased& terms = std::get<Place>(found).terms;
  const Instant start = std::get<Place>(found).start;
  if (!within(terms.prices, start, start, priced_end(start, start + command.duration),
              command.resources.gpus, command.price_limit)) {
    return Says{ReasonCode::PriceAboveLimit};
  }
  return Leased{NodeId(), {}, terms.prices, terms.quoted};
}

Outcome NaiveMarket::stop(Instant now, AccountId tenant, OrderId id) {
  const auto waiting = waiting_.find(id);
  if (waiting != waiting_.end() && waiting->second.tenant == tenant) {
    waiting_.erase(waiting);
    changed();
    return Says{};
  }
  const auto leased = leases_.find(id);
  if (leased == leases_.end() || leased->second.tenant != tenant) {
    return Says{ReasonCode::NoSuchObject};
  }
  NaiveLease& lease = leased->second;
  if (lease.booked && (lease.start <= now || displaced(lease))) {
    return give_back(id, Money());
  }
  if (lease.booked) {
    lease.booked = lease.delayed = false;
    lease.cancelled = true;
    changed();
  } else if (!lease.cancelled && !lease.ending) {
    lease.ending = EndReason::Stopped;
    lease.ending_since = std::min(now, lease.end);
  }
  return Says{};
}

Outcome NaiveMarket::extend(Instant now, const ExtendLease& command) {
  const auto it = leases_.find(command.order);
  if (it == leases_.end() || it->second.tenant != command.tenant) {
    return Says{ReasonCode::NoSuchObject};
  }
  NaiveLease& lease = it->second;
  const NaiveNode& node = nodes_.at(lease.node);
  const Instant new_end = lease.end + command.by;
  if (lease.ending || lease.cancelled) {
    return Says{ReasonCode::AlreadyEnded};
  }
  if (new_end - lease.start > Limits::kLeaseMax) {
    return Says{ReasonCode::LeaseTooLong};
  }
  if (node.draining) {
    return Says{ReasonCode::NodeDraining};
  }
  for (const auto& [id, other] : leases_) {
    for (const std::string& uuid : lease.uuids) {
      if (id != lease.id && !other.cancelled && other.start < new_end && lease.end < other.end &&
          std::find(other.uuids.begin(), other.uuids.end(), uuid) != other.uuids.end()) {
        return Says{ReasonCode::GpusTakenAfter};
      }
    }
  }
  if (!room_beside(node, lease.takes, lease.end, new_end, lease.id)) {
    return Says{ReasonCode::NodeResources};
  }
  const Instant old_until = priced_end(lease.start, lease.end);
  const Instant until = priced_end(lease.start, new_end);
  const auto gpus = std::ssize(lease.uuids);
  const Instant first_new = slot_start(slot_of(lease.start)) + kSlot * std::ssize(lease.prices);
  std::vector<Price> all = lease.prices;
  if (first_new < until) {
    Pool pool = look_at(PoolName{node.model, node.site});
    if (!lease.booked) {
      (node.owner == lease.tenant ? pool.supply : pool.demand) +=
          node.owner == lease.tenant ? gpus : -gpus;
      pool.leased -= gpus;
    }
    if (pool.supply == 0) {
      return Says{ReasonCode::NoSupply};
    }
    const auto added = prices(pool, gpus, now, first_new, until, std::ssize(all), node.floor);
    all.insert(all.end(), added.begin(), added.end());
  }
  if (old_until < until) {
    const Price limit = command.price_limit.count() > 0 ? command.price_limit : lease.limit;
    if (!within(all, lease.start, old_until, until, gpus, limit)) {
      return Says{ReasonCode::PriceAboveLimit};
    }
    lease.quoted += cost(all, lease.start, old_until, until);
    lease.limit = lease.limit.count() == 0 ? Price() : std::max(lease.limit, limit);
  }
  lease.prices = all;
  lease.end = new_end;
  return Leased{NodeId(), {}, lease.prices, lease.quoted};
}

Billed NaiveMarket::finish(OrderId id, EndReason reason, Instant stopped) {
  const NaiveLease lease = leases_.at(id);
  leases_.erase(id);
  for (NaiveGpu& gpu : nodes_.at(lease.node).gpus) {
    if (gpu.held_by == id) {
      gpu.held_by = OrderId();
      gpu.state = gpu.state == GpuState::Failed ? GpuState::Failed : GpuState::Sanitizing;
    }
  }
  changed();
  const bool is_hosts = reason == EndReason::NodeLost || reason == EndReason::GpuLost ||
                        reason == EndReason::DeviceCheckFailed ||
                        reason == EndReason::PreparationTimeout;
  const bool is_free = reason == EndReason::StartFailed || reason == EndReason::DeviceCheckFailed ||
                       reason == EndReason::PreparationTimeout;
  const Money least =
      lease.was_booked && !is_hosts ? Money((lease.quoted.count() + 9) / 10) : Money();
  if (!lease.running || is_free) {
    return Billed{reason, Duration(), least};
  }
  Instant from = *lease.running;
  Instant until = std::max(from, std::min(stopped, lease.end));
  if (reason != EndReason::NodeLost && reason != EndReason::GpuLost) {
    until = std::min(std::max(until, from + kNaiveBilledMin), priced_end(lease.start, lease.end));
    from = std::max(lease.started, std::min(from, until - kNaiveBilledMin));
  }
  const Money exact = std::min(lease.quoted, cost(lease.prices, lease.start, from, until));
  return Billed{reason, until - from, std::max(exact, least)};
}

Outcome NaiveMarket::report_running(Instant now, OrderId id) {
  NaiveLease& lease = leases_.at(id);
  if (!lease.running && !lease.ending) {
    lease.running = std::min(now, lease.end);
  }
  return Says{};
}

Outcome NaiveMarket::report_ended(Instant now, OrderId id, EndReason reason) {
  const NaiveLease& lease = leases_.at(id);
  Instant stopped = std::min(now, lease.end);
  if (lease.ending) {
    stopped = std::min(stopped, lease.ending_since);
  }
  return finish(id, lease.ending.value_or(reason), stopped);
}

std::vector<Billed> NaiveMarket::lose(Instant now, NodeId id, Instant last_acknowledged) {
  NaiveNode& node = nodes_.at(id);
  std::vector<Billed> bills;
  if (node.lost) {
    return bills;
  }
  node.lost = true;
  node.ready = false;
  changed();
  const std::map<OrderId, NaiveLease> before = leases_;
  for (const auto& [order, lease] : before) {
    if (lease.node == id && !lease.booked && !lease.cancelled) {
      Instant stopped = std::min({now, last_acknowledged, lease.end});
      if (lease.ending) {
        stopped = std::min(stopped, lease.ending_since);
      }
      bills.push_back(finish(order, lease.ending.value_or(EndReason::NodeLost), stopped));
    }
  }
  return bills;
}

void NaiveMarket::report_gpu(Instant now, const std::string& uuid, bool ok, bool clean) {
  for (auto& [id, node] : nodes_) {
    for (NaiveGpu& gpu : node.gpus) {
      if (gpu.uuid != uuid) {
        continue;
      }
      const GpuState before = gpu.state;
      if (!ok) {
        gpu.state = GpuState::Failed;
        if (before != GpuState::Failed && !gpu.held_by.is_none()) {
          NaiveLease& lease = leases_.at(gpu.held_by);
          if (!lease.ending) {
            lease.ending = EndReason::GpuLost;
            lease.ending_since = std::min(now, lease.end);
          }
        }
      } else if (gpu.held_by.is_none()) {
        const bool is_kept = !clean && before == GpuState::Sanitizing;
        gpu.state = clean ? GpuState::Free : is_kept ? before : GpuState::Sanitizing;
      }
      if (gpu.state != before) {
        changed();
      }
    }
  }
}

void NaiveMarket::close_slot() {
  for (const auto& [name, last] : last_prices_) {
    const Pool pool = look_at(name);
    noted_[name][open_slot_.count() % (7 * 24 * 4)] = pool.demand + pool.waiting;
  }
  open_slot_ += SlotNumber(1);
}

void NaiveMarket::move_prices(Instant now) {
  std::map<PoolName, Price> moved = last_prices_;
  for (auto& [name, last] : moved) {
    const Pool pool = look_at(name);
    if (pool.supply > 0) {
      last = prices(pool, 1, now, now, now + milliseconds(1), 0, Price()).front();
    }
  }
  last_prices_ = moved;
  last_price_tick_ = now;
  changed();
}

std::vector<std::pair<OrderId, Leased>> NaiveMarket::settle(Instant now) {
  booked_events_.clear();
  open_slot_ = open_slot_ == SlotNumber() ? slot_of(now) : open_slot_;
  std::vector<std::pair<OrderId, Leased>> granted;
  while (true) {
    if (one_due(now)) {
      continue;
    }
    if (now - last_price_tick_ >= minutes(1)) {
      move_prices(now);
      continue;
    }
    if (!review_) {
      return granted;
    }
    if (help_one(now)) {
      continue;
    }
    const auto found = next(now);
    if (found) {
      granted.emplace_back(found->first, grant(now, waiting_.at(found->first), found->second));
    } else {
      review_ = false;
    }
  }
}

}  // namespace bmgpu::core
