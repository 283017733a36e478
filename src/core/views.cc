#include "core/views.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "core/book/start_booked.h"
#include "core/book/window.h"
#include "core/indexes.h"
#include "core/ledger/charge.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"
#include "core/placement/placement.h"

namespace bmgpu::core {
namespace {

DesiredAttempt desired(const NodeRecord& node, const Lease& lease, std::uint32_t rank) {
  const RankPlacement& placement = lease.allocations.back().ranks[rank];
  DesiredAttempt attempt;
  attempt.lease = lease.id;
  attempt.order = lease.order;
  attempt.tenant = lease.tenant;
  attempt.rank = rank;
  attempt.token = FencingToken{lease.attempts[rank].incarnation, lease.attempts[rank].number};
  for (const Item& item : placement.items) {
    const auto gpu = std::find_if(node.gpus.begin(), node.gpus.end(),
                                  [&](const GpuRecord& record) { return record.id == item.gpu; });
    check(gpu != node.gpus.end(), "desired: an item on another node");
    attempt.gpu_uuids.push_back(gpu->uuid);
  }
  attempt.cpu_millis = placement.cpu_millis;
  attempt.memory_mib = placement.memory_mib;
  attempt.scratch_mib = placement.scratch_mib;
  attempt.lease_end = lease.end;
  attempt.restart = lease.restart;
  attempt.stop = lease.state == LeaseState::Ending;
  return attempt;
}

GpuView view_of(const GpuRecord& gpu) {
  return GpuView{gpu.id, gpu.uuid, gpu.gpu_class, gpu.state,
                 gpu.lease.is_none() ? std::nullopt : std::optional(gpu.lease)};
}

}  // namespace

std::vector<DesiredAttempt> desired_attempts(const State& state, NodeId id) {
  std::vector<DesiredAttempt> attempts;
  const auto it = state.nodes.find(id);
  if (it == state.nodes.end()) {
    return attempts;
  }
  for (const LeaseId lease_id : it->second.leases) {
    const Lease& lease = state.leases.at(lease_id);
    if (lease.state == LeaseState::Held) {
      continue;
    }
    const auto& ranks = lease.allocations.back().ranks;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank].node == id) {
        attempts.push_back(desired(it->second, lease, rank));
      }
    }
  }
  return attempts;
}

std::vector<OfferView> offers(const State& state, Instant now) {
  std::vector<OfferView> rows;
  for (const auto& [id, node] : state.nodes) {
    if (!can_be_placed_on(node)) {
      continue;
    }
    for (const ClassId gpu_class : node.classes) {
      const PoolKey key{gpu_class, node.site};
      const PoolRecord& pool = state.pools.at(key);
      const NodeShare share = share_of(node, gpu_class);
      if (share.healthy == 0) {
        continue;
      }
      const PriceRequest request{.gpus = 1,
                                 .now = now,
                                 .from = now,
                                 .until = now + kSlot,
                                 .owner_floor = node.owner_floor};
      const Price price = pool.supply > 0 ? lease_prices(state, key, pool, request).front()
                                          : std::max(pool.last_price, node.owner_floor);
      rows.push_back(OfferView{id, gpu_class, node.site, state.classes.at(gpu_class).spec,
                               share.healthy, share.free, price, node.driver, node.capacity});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const OfferView& a, const OfferView& b) {
    return std::tie(a.price, a.node, a.gpu_class) < std::tie(b.price, b.node, b.gpu_class);
  });
  return rows;
}

std::vector<SlotView> forward_prices(const State& state, const PoolKey& key, Instant now) {
  std::vector<SlotView> slots;
  const auto pool = state.pools.find(key);
  if (pool == state.pools.end() || pool->second.supply == 0) {
    return slots;
  }
  const SlotNumber first = slot_of(now);
  for (std::int64_t i = 0; i < Limits::kBookSlots; ++i) {
    const SlotNumber slot = first + SlotNumber(i);
    const PriceInputs inputs =
        next_gpu(state, key, pool->second, now, std::max(now, slot_start(slot)), Price());
    slots.push_back(SlotView{slot, slot_price(state.policy, state.slot_weights, inputs, 0),
                             inputs.demand, inputs.supply});
  }
  return slots;
}

const std::deque<SlotClosed>& closed_slots(const State& state) { return state.closed_slots; }

std::optional<OrderView> find_order(const State& state, OrderId id, Instant now) {
  const auto waiting = state.waiting.find(id);
  if (waiting != state.waiting.end()) {
    const Order& order = waiting->second;
    return OrderView{id, order.tenant, &order, nullptr,
                     why_waiting(state, order, std::max(now, state.last_stamp))};
  }
  const auto leased = state.leases.find(LeaseId(id.value()));
  if (leased != state.leases.end()) {
    return OrderView{id, leased->second.tenant, nullptr, &leased->second, std::nullopt};
  }
  return std::nullopt;
}

std::optional<OrderId> order_of(const State& state, LeaseId lease) {
  const auto it = state.leases.find(lease);
  return it != state.leases.end() ? std::optional(it->second.order) : std::nullopt;
}

std::vector<OrderId> live_orders(const State& state, AccountId tenant) {
  std::vector<OrderId> orders;
  if (!tenant.is_none()) {
    const auto it = state.orders_of_tenant.find(tenant);
    return it == state.orders_of_tenant.end()
               ? orders
               : std::vector<OrderId>(it->second.begin(), it->second.end());
  }
  for (const auto& [id, of_tenant] : state.orders_of_tenant) {
    orders.insert(orders.end(), of_tenant.begin(), of_tenant.end());
  }
  std::sort(orders.begin(), orders.end());
  return orders;
}

Money charge_so_far(const State& state, const Lease& lease, Instant now) {
  if (lease.state == LeaseState::Booked) {
    return Money();
  }
  if (lease.state == LeaseState::Cancelled) {
    return cancel_fee(state, lease);
  }
  Instant until = std::max(now, state.last_stamp);
  if (lease.ending_since) {
    until = *lease.ending_since;
  }
  return bill(lease, lease.ending.value_or(EndReason::Stopped), until).charged;
}

Money quoted(const Lease& lease) { return lease.quoted; }

std::vector<NodeView> nodes(const State& state) {
  std::vector<NodeView> views;
  views.reserve(state.nodes.size());
  for (const auto& [id, node] : state.nodes) {
    NodeView view{
        id,         node.owner, node.site, node.capacity,           node.driver, node.listing,
        node.ready, node.lost,  {},        std::ssize(node.leases), node.booked};
    for (const GpuRecord& gpu : node.gpus) {
      view.gpus.push_back(view_of(gpu));
    }
    views.push_back(std::move(view));
  }
  return views;
}

const GpuClassSpec& class_spec(const State& state, ClassId id) {
  const auto it = state.classes.find(id);
  check(it != state.classes.end(), "class_spec: no such class");
  return it->second.spec;
}

const MarketPolicy& policy(const State& state) { return state.policy; }

std::optional<NodeId> node_for(const State& state, const Quote& quote, Instant now) {
  const PoolKey key{quote.gpu_class, quote.site};
  if (quote.start > now) {
    const Interval span{quote.start, quote.start + quote.duration};
    return book_fit(state, key, quote.resources, span, quote.owner_floor);
  }
  return best_fit(state, key, state.pools.at(key), quote.resources, quote.owner_floor,
                  free_now(state, now, quote.duration));
}

const Quote* find_quote(const State& state, QuoteId id) {
  const auto it = state.quotes.find(id);
  return it != state.quotes.end() ? &it->second : nullptr;
}

}  // namespace bmgpu::core
