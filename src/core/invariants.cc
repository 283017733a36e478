// What must hold after every event, one function each. docs/ARCHITECTURE.md names them for people.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "core/book/stays.h"
#include "core/core.h"
#include "core/indexes.h"
#include "core/ledger/charge.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

bool holds_items(const Lease& lease) {
  return lease.state != LeaseState::Booked && lease.state != LeaseState::Cancelled;
}

// At each GPU Σ thousandths ≤ 1000 and Σ memory ≤ its own; the record names the one lease.
void each_gpu_is_sold_once(const State& state) {
  std::map<GpuId, std::pair<std::int64_t, std::int64_t>> sold;
  for (const auto& [id, lease] : state.leases) {
    if (!holds_items(lease)) {
      continue;
    }
    for (const RankPlacement& rank : lease.allocations.back().ranks) {
      for (const Item& item : rank.items) {
        auto& [thousandths, memory_mib] = sold[item.gpu];
        thousandths += item.thousandths;
        memory_mib += item.memory_mib;
        check(state.node_of_gpu.at(item.gpu) == rank.node, "invariant: an item is elsewhere");
      }
    }
  }
  std::size_t held = 0;
  for (const auto& [id, node] : state.nodes) {
    for (const GpuRecord& gpu : node.gpus) {
      const auto it = sold.find(gpu.id);
      check(gpu.lease.is_none() == (it == sold.end()), "invariant: held without a lease, or not");
      if (it != sold.end()) {
        ++held;
        check(it->second.first <= 1000, "invariant: a GPU is sold twice");
        check(it->second.second <= state.classes.at(gpu.gpu_class).spec.memory_mib,
              "invariant: more GPU memory is sold than there is");
      }
    }
  }
  check(held == sold.size(), "invariant: a lease holds an unknown GPU");
}

// A GPU is leased exactly if a lease holds it, unless it failed meanwhile.
void gpu_states_are_true(const NodeRecord& node) {
  check(node.classes == classes_of(node), "invariant: the classes of a node");
  const auto named = std::count_if(node.gpus.begin(), node.gpus.end(),
                                   [](const GpuRecord& gpu) { return gpu.named; });
  check(node.gpus_named == named, "invariant: the number of a node's GPUs");
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.state == GpuState::Leased) {
      check(!gpu.lease.is_none(), "invariant: leased to nobody");
    } else if (gpu.state != GpuState::Failed) {
      check(gpu.lease.is_none(), "invariant: held, but not leased");
    }
    check(gpu.named || gpu.state == GpuState::Failed, "invariant: a missing GPU is not failed");
    check(gpu.lease.is_none() || gpu.named, "invariant: a missing GPU is leased");
  }
}

// What a node has given away beside GPUs is the sum over its leases.
void node_resources_add_up(const State& state) {
  std::map<NodeId, NodeCapacity> used;
  for (const auto& [id, lease] : state.leases) {
    if (!holds_items(lease)) {
      continue;
    }
    for (const RankPlacement& rank : lease.allocations.back().ranks) {
      used[rank.node].cpu_millis += rank.cpu_millis;
      used[rank.node].memory_mib += rank.memory_mib;
      used[rank.node].scratch_mib += rank.scratch_mib;
      check(state.nodes.at(rank.node).leases.contains(id), "invariant: a node misses a lease");
    }
  }
  for (const auto& [id, node] : state.nodes) {
    check(node.used == used[id], "invariant: a node's used resources");
    for (const LeaseId lease : node.leases) {
      check(state.leases.contains(lease), "invariant: a node has an unknown lease");
    }
  }
}

// A lease has one end, one live attempt a rank, and a price for each slot that it touches.
void lease_is_whole(const Lease& lease) {
  check(lease.start < lease.end, "invariant: a lease without a length");
  check(lease.end - lease.start <= Limits::kLeaseMax, "invariant: a lease is too long");
  check(lease.allocations.back().until == lease.end, "invariant: two ends of a lease");
  const auto& ranks = lease.allocations.back().ranks;
  const bool has_job = holds_items(lease) && lease.state != LeaseState::Held;
  check(lease.attempts.size() == (has_job ? ranks.size() : 0),
        "invariant: not one attempt a rank");
  check(lease.state != LeaseState::Held || (lease.without_job && lease.running_since),
        "invariant: held with a job, or without a meter");
  check(!lease.delayed || lease.state == LeaseState::Booked, "invariant: delayed, not booked");
  check(lease.placed <= lease.start && lease.start <= lease.started,
        "invariant: a lease begins before it was granted");
  const bool is_over = lease.state == LeaseState::Ending || lease.state == LeaseState::Cancelled;
  check(is_over == lease.ending.has_value(), "invariant: a reason to end without ending, or not");
  check(lease.ending.has_value() == lease.ending_since.has_value(),
        "invariant: an end without a time");
  check(lease.state != LeaseState::Running || lease.running_since.has_value(),
        "invariant: running, but not metered");
  const Instant until = priced_until(lease.start, lease.end, lease.billed_min);
  check(std::ssize(lease.slot_prices) == slots_touched(lease.start, until),
        "invariant: not one price for each slot");
}

// Nobody pays above the limit, nor above the quote.
void pays_no_more_than_agreed(const Lease& lease) {
  const Instant until = priced_until(lease.start, lease.end, lease.billed_min);
  check(within_limit(lease.slot_prices, lease.start, until, lease.gpus, lease.price_limit),
        "invariant: a lease above its price limit");
  check(bill(lease, EndReason::Stopped, lease.end).charged <= lease.quoted,
        "invariant: a charge above the quote");
}

void leases_are_whole(const State& state) {
  for (const auto& [id, lease] : state.leases) {
    check(lease.id == id, "invariant: a lease under another id");
    lease_is_whole(lease);
    pays_no_more_than_agreed(lease);
  }
}

// An order waits or is leased, its tenant knows it, and its id was given out.
void orders_are_known_once(const State& state) {
  std::map<AccountId, std::set<OrderId>> expected;
  for (const auto& [id, lease] : state.leases) {
    check(!state.waiting.contains(lease.order), "invariant: an order waits and is leased");
    check(lease.order.value() < state.next_id, "invariant: an id from the future");
    expected[lease.tenant].insert(lease.order);
  }
  std::size_t queued = 0;
  for (const auto& [resources, queue] : state.queue) {
    check(!queue.empty(), "invariant: an empty queue");
    queued += queue.size();
    for (const QueueKey& key : queue) {
      check(state.waiting.at(key.id).resources == resources, "invariant: in the wrong queue");
    }
  }
  check(queued == state.waiting.size(), "invariant: an order in no queue");
  for (const auto& [id, order] : state.waiting) {
    check(id.value() < state.next_id, "invariant: an id from the future");
    expected[order.tenant].insert(id);
  }
  check(expected == state.orders_of_tenant, "invariant: the orders of a tenant");
}

// What time alone will change is on the list, and nothing else.
void deadlines_are_complete(const State& state) {
  std::set<Deadline> expected;
  for (const auto& [id, lease] : state.leases) {
    if (const auto deadline = deadline_of(state, lease)) {
      expected.insert(*deadline);
    }
  }
  for (const auto& [id, quote] : state.quotes) {
    expected.insert(deadline_of(state, quote));
  }
  for (const auto& [id, order] : state.waiting) {
    expected.insert(deadline_of(state, order));
  }
  for (const auto& [id, node] : state.nodes) {
    if (const auto deadline = deadline_of(state, node)) {
      expected.insert(*deadline);
    }
  }
  check(expected == state.deadlines, "invariant: deadlines");
}

// 0 ≤ free ≤ total in every pool, and each list says what the nodes and orders say.
void pools_are_true(const State& state) {
  State fresh;
  fresh.policy = state.policy;
  fresh.classes = state.classes;
  for (const auto& [key, pool] : state.pools) {
    fresh.pools[key].last_price = pool.last_price;
  }
  for (const auto& [id, node] : state.nodes) {
    list_node(fresh, node);
  }
  for (const auto& [id, order] : state.waiting) {
    add_waiting(fresh, order);
  }
  for (const auto& [id, lease] : state.leases) {
    if (!holds_items(lease)) {
      continue;
    }
    PoolRecord& pool = fresh.pools.at(PoolKey{lease.gpu_class, lease.site});
    for (const RankPlacement& rank : lease.allocations.back().ranks) {
      const bool owners_use = lease.tenant == state.nodes.at(rank.node).owner;
      pool.gpus_leased += std::ssize(rank.items);
      pool.demand_leased += owners_use ? 0 : std::ssize(rank.items);
    }
  }
  check(fresh.pools.size() == state.pools.size(), "invariant: the set of pools");
  for (const auto& [key, pool] : state.pools) {
    PoolRecord& expected = fresh.pools.at(key);
    refresh_supply(expected);
    check(expected == pool, "invariant: a pool's counts and lists");
  }
}

// At no instant two leases have the same GPU, as planned, and each has its place on its node.
void stays_are_true(const State& state) {
  std::size_t places = 0;
  for (const auto& [id, node] : state.nodes) {
    std::int64_t booked = 0;
    std::map<std::pair<ClassId, std::uint64_t>, Instant> until;  // by lane
    for (const Stay& stay : node.stays) {
      const Lease& lease = state.leases.at(stay.lease);
      const RankPlacement& rank = lease.allocations.back().ranks.front();
      check(stay == Stay{lease.start,
                         lease.end,
                         lease.id,
                         lease.gpu_class,
                         lanes_of(node, lease.gpu_class, rank.items),
                         {rank.cpu_millis, rank.memory_mib, rank.scratch_mib},
                         lease.state == LeaseState::Booked},
            "invariant: a place in the book");
      booked += stay.booked ? 1 : 0;
      for (std::uint64_t lanes = stay.lanes; lanes != 0; lanes &= lanes - 1) {
        Instant& free_from = until[{stay.gpu_class, lanes & ~(lanes - 1)}];
        check(free_from <= stay.from, "invariant: a GPU is booked twice");
        free_from = stay.until;
      }
    }
    check(booked == node.booked, "invariant: the number of a node's bookings");
    places += node.stays.size();
  }
  const auto with_place = std::count_if(state.leases.begin(), state.leases.end(), [](auto& entry) {
    return entry.second.state != LeaseState::Cancelled;
  });
  check(static_cast<std::ptrdiff_t>(places) == with_place, "invariant: a lease without its place");
}

// The calendars say what leases and nodes say, and so do the lists of leases in trouble.
void book_is_true(const State& state) {
  State fresh;
  fresh.policy = state.policy;
  fresh.open_slot = state.open_slot;
  fresh.leases = state.leases;
  for (const auto& [key, calendar] : state.calendars) {
    check(calendar.first() == state.open_slot, "invariant: a calendar of another time");
    fresh.calendars.try_emplace(key, state.open_slot);
  }
  for (const auto& [id, node] : state.nodes) {
    NodeRecord& copy = fresh.nodes.emplace(id, node).first->second;
    copy.stays.clear();
    copy.rows.clear();
    copy.booked = 0;
    enter_book(fresh, copy);
  }
  for (const auto& [id, lease] : state.leases) {
    if (lease.state != LeaseState::Cancelled) {
      add_stay(fresh, lease);
    }
  }
  for (const auto& [key, calendar] : state.calendars) {
    check(calendar.says_the_same(fresh.calendars.at(key)), "invariant: the book's slots");
  }
  check(fresh.far_leases == state.far_leases, "invariant: leases beyond the book");
  check(fresh.delayed == state.delayed, "invariant: delayed leases");
  check(fresh.displaced == state.displaced, "invariant: displaced leases");
}

// The last closed slots, each once, in order, before the open one.
void closed_slots_are_in_order(const State& state) {
  check(std::ssize(state.closed_slots) <= Limits::kClosedSlots, "invariant: too many closed slots");
  SlotNumber next;
  for (const SlotClosed& closed : state.closed_slots) {
    check(closed.slot >= next, "invariant: closed slots out of order");
    next = closed.slot + SlotNumber(1);
  }
  check(next <= state.open_slot, "invariant: a closed slot is open");
}

// --- what one event touched ---

// Its leases hold its GPUs and use its resources, and the lists of its pools have it where it is.
void node_is_true(const State& state, NodeId id) {
  const NodeRecord& node = state.nodes.at(id);
  gpu_states_are_true(node);
  NodeCapacity used;
  std::int64_t items = 0;
  for (const LeaseId lease : node.leases) {
    for (const RankPlacement& rank : state.leases.at(lease).allocations.back().ranks) {
      const bool here = rank.node == id;
      items += here ? std::ssize(rank.items) : 0;
      used.cpu_millis += here ? rank.cpu_millis : 0;
      used.memory_mib += here ? rank.memory_mib : 0;
      used.scratch_mib += here ? rank.scratch_mib : 0;
    }
  }
  check(node.used == used, "invariant: a node's used resources");
  const auto held = std::count_if(node.gpus.begin(), node.gpus.end(), [&](const GpuRecord& gpu) {
    return !gpu.lease.is_none() && node.leases.contains(gpu.lease);
  });
  check(held == items, "invariant: held without a lease, or not");
  for (const ClassId gpu_class : node.classes) {
    const PoolRecord& pool = state.pools.at(PoolKey{gpu_class, node.site});
    const NodeShare share = share_of(node, gpu_class);
    std::size_t listed = 0;
    for (const auto& [floor, lists] : pool.free_by_floor) {
      for (std::size_t free = 0; free < lists.size(); ++free) {
        const bool here = lists[free].contains(NodeRank{node.leases.empty(), id});
        listed += here ? 1 : 0;
        check(!here || (floor == node.owner_floor && free == static_cast<std::size_t>(share.free)),
              "invariant: a node is listed as what it is not");
      }
    }
    check(listed == (share.free > 0 ? 1U : 0U), "invariant: a node is not listed once");
  }
}

void lease_is_true(const State& state, LeaseId id) {
  const Lease& lease = state.leases.at(id);
  lease_is_whole(lease);
  pays_no_more_than_agreed(lease);
  check(!state.waiting.contains(lease.order), "invariant: an order waits and is leased");
  check(state.orders_of_tenant.at(lease.tenant).contains(lease.order),
        "invariant: the orders of a tenant");
  const auto deadline = deadline_of(state, lease);
  check(!deadline || state.deadlines.contains(*deadline), "invariant: deadlines");
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    node_is_true(state, rank.node);
  }
}

void order_is_true(const State& state, OrderId id) {
  const Order& order = state.waiting.at(id);
  check(state.queue.at(order.resources)
            .contains(QueueKey{order.duration * order.resources.gpus, order.placed, id}),
        "invariant: an order in no queue");
  check(state.deadlines.contains(deadline_of(state, order)), "invariant: deadlines");
  check(state.orders_of_tenant.at(order.tenant).contains(id), "invariant: the orders of a tenant");
}

// One overload for each event that touches something of its own.
struct Touched {
  const State& state;
  void operator()(const NodeRegistered& e) const { node_is_true(state, e.node); }
  void operator()(const NodeReadyChanged& e) const { node_is_true(state, e.node); }
  void operator()(const NodeListingChanged& e) const { node_is_true(state, e.node); }
  void operator()(const NodeLeftSupply& e) const { node_is_true(state, e.node); }
  void operator()(const NodeLost& e) const { node_is_true(state, e.node); }
  void operator()(const GpuStateChanged& e) const {
    node_is_true(state, state.node_of_gpu.at(e.gpu));
  }
  void operator()(const OrderQueued& e) const { order_is_true(state, e.order.id); }
  void operator()(const LeaseGranted& e) const { lease_is_true(state, e.lease.id); }
  void operator()(const LeaseRunning& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseExtended& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseEnding& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseStarted& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseMoved& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseDelayed& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseCancelled& e) const { lease_is_true(state, e.id); }
  void operator()(const JobGiven& e) const { lease_is_true(state, e.id); }
  void operator()(const LeaseEnded& e) const {
    check(!state.waiting.contains(e.order), "invariant: an order that is over waits");
    check(e.charged <= e.quoted, "invariant: a charge above the quote");
  }
  void operator()(const QuoteIssued& e) const {
    check(state.deadlines.contains(deadline_of(state, e.quote)), "invariant: deadlines");
  }
  template <typename Other>
  void operator()(const Other&) const {}
};

}  // namespace

void check_invariants_of(const State& state, const Event& event) {
  std::visit(Touched{state}, event);
}

void check_invariants(const State& state) {
  each_gpu_is_sold_once(state);
  for (const auto& [id, node] : state.nodes) {
    gpu_states_are_true(node);
  }
  node_resources_add_up(state);
  leases_are_whole(state);
  orders_are_known_once(state);
  deadlines_are_complete(state);
  pools_are_true(state);
  stays_are_true(state);
  book_is_true(state);
  closed_slots_are_in_order(state);
}

}  // namespace bmgpu::core
