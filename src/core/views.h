// Read-only questions about a State, for the API, the node sessions and people.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/core.h"

namespace bmgpu::core {

// What a node shall run, lease end included, and what it shall say the end of. Ordered by
// (lease, rank).
struct DesiredAttempt {
  LeaseId lease;
  OrderId order;
  AccountId tenant;
  std::uint32_t rank = 0;
  FencingToken token;
  std::vector<std::string> gpu_uuids;
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::int64_t scratch_mib = 0;
  Instant lease_end;
  RestartPolicy restart = RestartPolicy::HostFailure;
  bool stop = false;  // its lease is ending: only the node's word that nothing is left ends it
};
std::vector<DesiredAttempt> desired_attempts(const State& state, NodeId node);

// One row of `list`: the free GPUs of one class on one node.
struct OfferView {
  NodeId node;
  ClassId gpu_class;
  SiteId site;
  GpuClassSpec spec;
  std::int64_t gpus_total = 0;  // healthy and listed
  std::int64_t gpus_free = 0;
  Price price;  // of one GPU's first slot, now
  Driver driver = Driver::Real;
  NodeCapacity capacity;
};
// By (price, node, class). Nodes that are draining, not ready or lost are absent.
std::vector<OfferView> offers(const State& state, Instant now);

// A slot of the forward book: what one GPU would cost for it alone, booked now.
struct SlotView {
  SlotNumber slot;
  Price price;
  std::int64_t demand = 0;  // leased, booked, waited for and expected
  std::int64_t supply = 0;
};
// From the present slot to the end of the book; empty without supply. `key` need not exist.
std::vector<SlotView> forward_prices(const State& state, const PoolKey& key, Instant now);
// The closed slots of the last seven days, oldest first; valid until the next apply().
const std::deque<SlotClosed>& closed_slots(const State& state);

// A live order: waiting, leased or booked. Ended ones are history.
struct OrderView {
  OrderId id;
  AccountId tenant;
  const Order* waiting = nullptr;  // exactly one of the two is set; valid until the next apply()
  const Lease* lease = nullptr;
  std::optional<Reason> waiting_reason;
};
std::optional<OrderView> find_order(const State& state, OrderId id, Instant now);
std::optional<OrderId> order_of(const State& state, LeaseId lease);
std::vector<OrderId> live_orders(const State& state, AccountId tenant);  // tenant none: all; by id

// What a lease has cost until `now`, and the most that it can cost.
Money charge_so_far(const State& state, const Lease& lease, Instant now);
Money quoted(const Lease& lease);

// Nodes with every GPU, by id.
struct GpuView {
  GpuId id;
  std::string uuid;
  ClassId gpu_class;
  GpuState state = GpuState::Free;
  std::optional<LeaseId> lease;
};
struct NodeView {
  NodeId id;
  AccountId owner;
  SiteId site;
  NodeCapacity capacity;
  Driver driver = Driver::Real;
  NodeListing listing = NodeListing::Offered;
  bool ready = false;
  bool lost = false;
  std::vector<GpuView> gpus;
  std::int64_t leases = 0;
  std::int64_t bookings = 0;  // leases that start later
};
std::vector<NodeView> nodes(const State& state);
const GpuClassSpec& class_spec(const State& state, ClassId id);  // REQUIRES: known
const MarketPolicy& policy(const State& state);
const Quote* find_quote(const State& state, QuoteId id);  // valid until the next apply()
// Where the quote would run if it were taken now; absent: its GPUs have been taken meanwhile.
std::optional<NodeId> node_for(const State& state, const Quote& quote, Instant now);

}  // namespace bmgpu::core
