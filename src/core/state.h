// The live market as plain data. Only apply() changes it; everybody else reads it through views.h.
//
// The first part of each record is what events say. What is marked "derived" can be computed from
// the rest, is kept by core/indexes.h, and check_invariants() recomputes it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fixed.h"
#include "core/book/calendar.h"
#include "core/events.h"
#include "core/types.h"

namespace bmgpu::core {

struct GpuRecord {
  GpuId id;
  ClassId gpu_class;
  std::string uuid;
  GpuState state = GpuState::Free;
  bool named = true;        // by the node's latest inventory
  LeaseId lease{};          // that holds it, none if nobody's; a Failed one may still be held
  bool owners_use = false;  // the lease is the node owner's own: neither supply nor demand
};

// What a lease, live or booked, has of a node, and until when as planned.
struct Stay {
  Instant from;
  Instant until;
  LeaseId lease;
  ClassId gpu_class;
  std::uint64_t lanes = 0;  // bits of its row in the calendar; lacks GPUs that are gone
  NodeCapacity takes;
  bool booked = false;  // it has not started
  bool operator==(const Stay&) const = default;
};

struct NodeRecord {
  NodeId id;
  AccountId owner;
  SiteId site;
  NodeCapacity capacity;
  Driver driver = Driver::Real;
  Price owner_floor;
  NodeListing listing = NodeListing::Offered;
  Instant listing_since;
  bool left_supply = false;  // drained longer than the policy's delisted_supply
  bool ready = false;
  bool lost = false;
  Instant last_acknowledged;    // when lost
  std::vector<GpuRecord> gpus;  // by id
  // Derived.
  NodeCapacity used;
  std::int64_t gpus_named = 0;
  std::vector<ClassId> classes;                    // of its GPUs, by id
  std::set<LeaseId> leases;                        // that have started
  std::vector<Stay> stays;                         // by start, then lease
  std::int64_t booked = 0;                         // stays that have not started
  std::vector<std::optional<Calendar::Row>> rows;  // by class; none without a named GPU of it
};

struct ClassRecord {
  ClassId id;
  GpuClassSpec spec;
  // Derived.
  std::vector<std::string> words;  // of the model, sorted
  std::int64_t base_micros_per_gpu_hour = 0;
};

// Placement's key: nodes in use first, then by id.
using NodeRank = std::pair<bool, NodeId>;  // (idle, node)
// Nodes that can be placed on, by the number of their free GPUs.
using FreeNodes = std::array<std::set<NodeRank>, Limits::kGpusPerNodeMax + 1>;

// What a price belongs to: one class in one site.
struct PoolKey {
  ClassId gpu_class;
  SiteId site;
  friend auto operator<=>(const PoolKey&, const PoolKey&) = default;
};
struct PoolRecord {
  Price last_price;  // at the last price tick
  // Derived.
  std::int64_t gpus_healthy = 0;  // on nodes that are ready, leased ones included
  std::int64_t gpus_leased = 0;
  std::int64_t demand_leased = 0;   // gpus_leased without owners' own use
  std::int64_t demand_waiting = 0;  // of waiting orders whose limit is not below last_price
  std::int64_t supply = 0;          // of supply_by_floor: not above last_price, or the lowest
  std::map<Price, std::int64_t> supply_by_floor;
  std::map<Price, std::int64_t> waiting_by_limit;  // no limit = Price::max()
  std::map<Price, FreeNodes> free_by_floor;
  std::map<std::int64_t, std::set<NodeId>> nodes_by_size;  // every node with GPUs of it, by count
  bool operator==(const PoolRecord&) const = default;
};

// Waiting orders that want the same are served shortest GPU-time first.
struct ResourcesLess {
  bool operator()(const Resources& a, const Resources& b) const;
};
struct QueueKey {
  Duration gpu_time;
  Instant placed;
  OrderId id;
  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

enum class DeadlineKind { Lease, Quote, Order, Supply };
struct Deadline {
  Instant at;
  DeadlineKind kind = DeadlineKind::Lease;
  std::uint64_t id = 0;
  friend auto operator<=>(const Deadline&, const Deadline&) = default;
};

struct State {
  State();

  MarketPolicy policy;
  std::uint64_t next_id = 1;
  Instant last_stamp;
  Instant last_price_tick;
  bool review_due = false;  // capacity or prices changed while orders or booked leases wait
  SlotNumber open_slot;     // the first that is not closed; 0: no time has passed yet
  std::deque<SlotClosed> closed_slots;  // the last Limits::kClosedSlots, oldest first
  std::map<PoolKey, DemandCurveSet> curves;

  std::map<ClassId, ClassRecord> classes;
  std::map<NodeId, NodeRecord> nodes;
  std::map<PoolKey, PoolRecord> pools;
  std::map<LeaseId, Lease> leases;
  std::map<OrderId, Order> waiting;
  std::map<QuoteId, Quote> quotes;

  // Derived.
  std::vector<Fixed> slot_weights;  // C(h + ¼) − C(h) by slot index, up to the last positive one
  std::map<GpuId, NodeId> node_of_gpu;
  std::map<std::string, GpuId, std::less<>> gpu_of_uuid;
  std::map<Resources, std::set<QueueKey>, ResourcesLess> queue;
  std::map<AccountId, std::set<OrderId>> orders_of_tenant;
  std::set<Deadline> deadlines;
  std::map<PoolKey, Calendar> calendars;  // all begin at open_slot
  // Of the last week, by slot modulo Limits::kClosedSlots; −1: nothing is known.
  std::map<PoolKey, std::vector<std::int64_t>> week_demand;
  std::set<std::pair<Instant, LeaseId>> far_leases;  // by end: it is after the calendars' end
  std::set<std::pair<Instant, LeaseId>> delayed;     // booked and due, by start
  std::set<std::pair<Instant, LeaseId>> displaced;   // booked where they should not be, by start
};

}  // namespace bmgpu::core
