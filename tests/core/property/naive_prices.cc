#include <algorithm>
#include <tuple>

#include "core/market/pricing.h"
#include "core/market/words.h"
#include "core/property/naive_market.h"

namespace bmgpu::core {

Money cost(const std::vector<Price>& prices, Instant start, Instant from, Instant until) {
  Money sum;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Instant opens = slot_start(slot_of(start)) + kSlot * static_cast<std::int64_t>(i);
    const Instant first = std::max(opens, from);
    const Instant last = std::min(opens + kSlot, until);
    if (first < last) {
      sum += charge(prices[i], last - first);
    }
  }
  return sum;
}

// Price × time without rounding, for limits.
bool within(const std::vector<Price>& prices, Instant start, Instant from, Instant until,
            std::int64_t gpus, Price limit) {
  if (limit.count() == 0) {
    return true;
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Instant opens = slot_start(slot_of(start)) + kSlot * static_cast<std::int64_t>(i);
    const Instant first = std::max(opens, from);
    const Instant last = std::min(opens + kSlot, until);
    sum += first < last ? prices[i].count() * (last - first).count() : 0;
  }
  return sum <= limit.count() * gpus * (until - from).count();
}

Instant priced_end(Instant start, Instant end) { return std::max(end, start + kNaiveBilledMin); }

bool NaiveMarket::placeable(const NaiveNode& node) const {
  return node.ready && !node.lost && !node.draining;
}

std::int64_t NaiveMarket::free_gpus(const NaiveNode& node) const {
  return std::count_if(node.gpus.begin(), node.gpus.end(),
                       [](const NaiveGpu& gpu) { return gpu.state == GpuState::Free; });
}

NodeCapacity NaiveMarket::used(NodeId node) const {
  NodeCapacity sum;
  for (const auto& [id, lease] : leases_) {
    if (lease.node == node && !lease.booked && !lease.cancelled) {
      sum.cpu_millis += lease.takes.cpu_millis;
      sum.memory_mib += lease.takes.memory_mib;
      sum.scratch_mib += lease.takes.scratch_mib;
    }
  }
  return sum;
}

NodeCapacity NaiveMarket::wants(const NaiveNode& node, const Resources& resources) const {
  const auto gpus = std::ssize(node.gpus);
  const auto part = [&](std::int64_t asked, std::int64_t whole) {
    return asked > 0 ? asked : whole * resources.gpus / gpus;
  };
  return {part(resources.cpu_millis, node.capacity.cpu_millis),
          part(resources.memory_mib, node.capacity.memory_mib),
          part(resources.scratch_mib, node.capacity.scratch_mib)};
}

bool NaiveMarket::fits(const NaiveNode& node, const Resources& resources, bool when_empty) const {
  const NodeCapacity taken = when_empty ? NodeCapacity{} : used(node.id);
  const NodeCapacity want = wants(node, resources);
  return taken.cpu_millis + want.cpu_millis <= node.capacity.cpu_millis &&
         taken.memory_mib + want.memory_mib <= node.capacity.memory_mib &&
         taken.scratch_mib + want.scratch_mib <= node.capacity.scratch_mib;
}

bool NaiveMarket::counts_as_demand(const NaiveOrder& order) const {
  return order.limit.count() == 0 || order.limit >= last_prices_.at(order.home);
}

NaiveMarket::Pool NaiveMarket::look_at(const PoolName& name) const {
  Pool pool;
  pool.name = name;
  pool.last = last_prices_.at(name);
  std::map<Price, std::int64_t> offered;
  for (const auto& [id, node] : nodes_) {
    if (PoolName{node.model, node.site} != name) {
      continue;
    }
    for (const NaiveGpu& gpu : node.gpus) {
      const bool owners_use =
          !gpu.held_by.is_none() && leases_.at(gpu.held_by).tenant == node.owner;
      pool.leased += gpu.held_by.is_none() ? 0 : 1;
      pool.demand += gpu.held_by.is_none() || owners_use ? 0 : 1;
      pool.owners_use_some = pool.owners_use_some || owners_use;
      if (!node.ready || node.lost || gpu.state == GpuState::Failed) {
        continue;
      }
      ++pool.healthy;
      if (!node.left_supply && !owners_use) {
        ++offered[node.floor];
      }
    }
  }
  for (const auto& [floor, gpus] : offered) {
    pool.supply += floor <= pool.last || pool.supply == 0 ? gpus : 0;
  }
  for (const auto& [id, order] : waiting_) {
    pool.waiting += order.home == name && counts_as_demand(order) ? order.resources.gpus : 0;
  }
  return pool;
}

std::int64_t NaiveMarket::demand(const Pool& pool, SlotNumber slot, Instant now,
                                 std::int64_t more) const {
  const Instant begins = slot_start(slot);
  std::int64_t touching = 0;
  std::int64_t booked = 0;
  for (const auto& [id, lease] : leases_) {
    const NaiveNode& node = nodes_.at(lease.node);
    const bool is_here = PoolName{node.model, node.site} == pool.name;
    if (is_here && node.owner != lease.tenant && !lease.cancelled && lease.start < begins + kSlot &&
        begins < lease.end) {
      touching += std::ssize(lease.uuids);
      booked += lease.booked ? std::ssize(lease.uuids) : 0;
    }
  }
  const std::int64_t waiting = begins <= now + hours(24) ? pool.waiting : 0;
  const auto notes = noted_.find(pool.name);
  const std::int64_t of_week = slot.count() % (7 * 24 * 4);
  if (notes == noted_.end() || !notes->second.contains(of_week)) {
    return pool.demand + booked + more + waiting;
  }
  const std::int64_t taken =
      slot == slot_of(now) ? std::max(touching, pool.demand + booked) : touching;
  return std::max(taken + more, notes->second.at(of_week)) + waiting;
}

std::vector<Price> NaiveMarket::prices(const Pool& pool, std::int64_t gpus, Instant now,
                                       Instant from, Instant until, std::int64_t first_index,
                                       Price floor) const {
  std::vector<Price> slots;
  for (Instant opens = slot_start(slot_of(from)); opens < until; opens = opens + kSlot) {
    Price sum;
    for (std::int64_t taken = 0; taken < gpus; ++taken) {
      const std::int64_t load =
          pool.healthy == 0
              ? 0
              : std::min<std::int64_t>((pool.leased + taken) * 1000 / pool.healthy, 1000);
      const bool is_soon = opens - now < hours(1);
      sum += slot_price(policy_, weights_,
                        PriceInputs{kNaiveBase, demand(pool, slot_of(opens), now, taken),
                                    pool.supply, is_soon ? load : 0, floor},
                        first_index + std::ssize(slots));
    }
    slots.push_back(sum);
  }
  return slots;
}

std::vector<std::string> NaiveMarket::models(const Resources& resources) const {
  std::vector<std::string> matching;
  for (const std::string& model : known_models_) {
    if (words_match(resources.gpu_words, model)) {
      matching.push_back(model);
    }
  }
  return matching;
}

std::variant<NaiveMarket::Place, ReasonCode> NaiveMarket::cheapest(
    Instant now, const Resources& resources, Duration duration, const NaiveOrder* waiting) const {
  const Instant until = priced_end(now, now + duration);
  using Rank = std::tuple<Money, std::size_t, SiteId, std::int64_t, bool, NodeId>;
  std::optional<std::pair<Rank, Place>> best;
  bool has_supply = false;
  bool has_gpus = false;
  bool is_booked = false;
  const Instant held_until = now + duration + kNaiveTurnaround;
  const std::vector<std::string> matching = models(resources);
  for (const auto& [id, node] : nodes_) {
    const auto model = std::find(matching.begin(), matching.end(), node.model);
    if (model == matching.end()) {
      continue;
    }
    const PoolName name{node.model, node.site};
    Pool pool = look_at(name);
    has_supply = has_supply || pool.supply > 0 || pool.owners_use_some;
    if (!placeable(node) || free_gpus(node) < resources.gpus) {
      continue;
    }
    has_gpus = true;
    if (has_bookings(id) &&
        (std::ssize(free_now(node, now, held_until, OrderId())) < resources.gpus ||
         !room_beside(node, wants(node, resources), now, held_until, OrderId()))) {
      is_booked = true;
      continue;
    }
    if (pool.supply == 0 || !fits(node, resources, false)) {
      continue;
    }
    if (waiting != nullptr && waiting->home == name && counts_as_demand(*waiting)) {
      pool.waiting -= resources.gpus;
    }
    Leased terms;
    terms.node = id;
    terms.prices = prices(pool, resources.gpus, now, now, until, 0, node.floor);
    terms.quoted = cost(terms.prices, now, now, until);
    const bool is_idle = std::none_of(leases_.begin(), leases_.end(), [&](const auto& lease) {
      return lease.second.node == id && !lease.second.booked && !lease.second.cancelled;
    });
    const Rank rank{terms.quoted, static_cast<std::size_t>(model - matching.begin()),
                    node.site,    free_gpus(node),
                    is_idle,      id};
    if (!best || rank < best->first) {
      best = {rank, Place{name, id, terms, now}};
    }
  }
  if (best) {
    return best->second;
  }
  return !has_supply              ? ReasonCode::NoSupply
         : has_gpus && !is_booked ? ReasonCode::NodeResources
                                  : ReasonCode::NoCapacityNow;
}

std::variant<PoolName, ReasonCode> NaiveMarket::home(const Resources& resources) const {
  const std::vector<std::string> matching = models(resources);
  if (matching.empty()) {
    return ReasonCode::UnknownGpu;
  }
  using Rank = std::tuple<Price, std::size_t, SiteId>;
  std::optional<std::pair<Rank, PoolName>> best;
  std::int64_t largest = 0;
  for (const auto& [id, node] : nodes_) {
    const auto model = std::find(matching.begin(), matching.end(), node.model);
    if (model == matching.end()) {
      continue;
    }
    largest = std::max(largest, std::ssize(node.gpus));
    const PoolName name{node.model, node.site};
    const Rank rank{last_prices_.at(name), static_cast<std::size_t>(model - matching.begin()),
                    node.site};
    if (std::ssize(node.gpus) >= resources.gpus && fits(node, resources, true) &&
        (!best || rank < best->first)) {
      best = {rank, name};
    }
  }
  if (best) {
    return best->second;
  }
  return largest < resources.gpus ? ReasonCode::TooManyGpus : ReasonCode::NodeResources;
}

}  // namespace bmgpu::core
