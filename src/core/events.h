// What happened. Events carry outcomes (prices, items, policy version), so that an upgrade which
// changes pricing or placement never rewrites history. apply() is the only thing that reads them
// into a State; store/ is the only thing that encodes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/types.h"

namespace bmgpu::core {

struct PolicySet {
  MarketPolicy policy;
  bool operator==(const PolicySet&) const = default;
};
struct ClassDefined {
  ClassId id;
  GpuClassSpec spec;
  bool operator==(const ClassDefined&) const = default;
};
struct RegisteredGpu {
  GpuId id;
  ClassId gpu_class;
  std::string uuid;
  bool operator==(const RegisteredGpu&) const = default;
};
// The node as it is from now on. GPUs that it no longer names are Failed.
struct NodeRegistered {
  NodeId node;
  AccountId owner;
  SiteId site;
  NodeCapacity capacity;
  std::vector<RegisteredGpu> gpus;
  Driver driver = Driver::Real;
  Price owner_floor;
  bool operator==(const NodeRegistered&) const = default;
};
struct NodeReadyChanged {
  NodeId node;
  bool ready = false;
  bool operator==(const NodeReadyChanged&) const = default;
};
struct NodeListingChanged {
  NodeId node;
  NodeListing listing = NodeListing::Offered;
  Instant at;
  bool operator==(const NodeListingChanged&) const = default;
};
// A drained node's GPUs no longer count as supply: Policy delisted_supply after it was drained.
struct NodeLeftSupply {
  NodeId node;
  bool operator==(const NodeLeftSupply&) const = default;
};
struct NodeLost {
  NodeId node;
  Instant last_acknowledged;
  bool operator==(const NodeLost&) const = default;
};
// The node and its GPUs are known no more.
struct NodeRemoved {
  NodeId node;
  bool operator==(const NodeRemoved&) const = default;
};
struct GpuStateChanged {
  GpuId gpu;
  GpuState state = GpuState::Free;
  bool operator==(const GpuStateChanged&) const = default;
};
struct QuoteIssued {
  Quote quote;
  bool operator==(const QuoteIssued&) const = default;
};
struct QuoteClosed {  // taken or expired
  QuoteId id;
  bool operator==(const QuoteClosed&) const = default;
};
struct OrderQueued {
  Order order;
  bool operator==(const OrderQueued&) const = default;
};
struct OrderClosed {  // a waiting order that will never be served
  OrderId id;
  AccountId tenant;
  EndReason reason = EndReason::Cancelled;
  bool operator==(const OrderClosed&) const = default;
};
// Removes the waiting order of the same OrderId, if any. The items become Leased, unless the lease
// is Booked: then they are kept free for it.
struct LeaseGranted {
  Lease lease;
  bool operator==(const LeaseGranted&) const = default;
};
struct LeaseRunning {
  LeaseId id;
  std::uint32_t rank = 0;
  Instant since;
  bool operator==(const LeaseRunning&) const = default;
};
// A booked lease begins; its items become Leased.
struct LeaseStarted {
  LeaseId id;
  Instant at;
  std::vector<Attempt> attempts;  // by rank; empty: it was reserved without a job
  bool operator==(const LeaseStarted&) const = default;
};
// A booked lease gets equal items elsewhere. Prices and times stay.
struct LeaseMoved {
  LeaseId id;
  Instant at;
  std::vector<RankPlacement> ranks;
  std::string detail;  // why
  bool operator==(const LeaseMoved&) const = default;
};
// A booked lease is due, but its items are not ready and nothing equal is free.
struct LeaseDelayed {
  LeaseId id;
  Instant at;
  std::string detail;  // why
  bool operator==(const LeaseDelayed&) const = default;
};
// A booked lease is given back before its start. Its end, with the fee, follows at its start.
struct LeaseCancelled {
  LeaseId id;
  Instant at;
  bool operator==(const LeaseCancelled&) const = default;
};
// A lease that was reserved gets its job. Before its start: attempts are empty, they come with it.
struct JobGiven {
  LeaseId id;
  Instant at;
  RestartPolicy restart = RestartPolicy::HostFailure;
  std::vector<Attempt> attempts;  // by rank
  bool operator==(const JobGiven&) const = default;
};
struct LeaseExtended {
  LeaseId id;
  Instant end;
  std::vector<Price> slot_prices;  // the whole list, old prices unchanged
  PolicyVersion policy;
  Money quoted;  // the most that it can cost now
  Price price_limit;
  bool operator==(const LeaseExtended&) const = default;
};
// The node shall end it now; metering stops at `at`.
struct LeaseEnding {
  LeaseId id;
  EndReason reason = EndReason::Stopped;
  Instant at;
  std::string detail;
  std::optional<std::int32_t> exit_code;
  bool operator==(const LeaseEnding&) const = default;
};
// Over: the items become Sanitizing. Carries all that a bill needs.
struct LeaseEnded {
  LeaseId id;
  OrderId order;
  AccountId tenant;
  EndReason reason = EndReason::JobExited;
  Instant at;
  std::optional<Instant> billed_from;
  Duration billed;  // wall time charged; times gpus = GPU time
  Money charged;
  Money quoted;  // the most that it could have cost
  std::optional<std::int32_t> exit_code;
  std::string detail;
  Money fee{};  // the part of `charged` that is for time given back, not for time used
  bool operator==(const LeaseEnded&) const = default;
};
// The price of one GPU's next slot in a class and site, as noted at the price tick: waiting orders
// with a lower limit are no demand, nodes with a higher owner's floor are no supply.
struct PoolPrice {
  ClassId gpu_class;
  SiteId site;
  Price last;
  bool operator==(const PoolPrice&) const = default;
};
// A price tick. Pools whose price is unchanged are not named.
struct PricesMoved {
  Instant at;
  std::vector<PoolPrice> prices;
  bool operator==(const PricesMoved&) const = default;
};
// The forecast of SetDemandCurve.
struct DemandCurveSet {
  ClassId gpu_class;
  SiteId site;
  SlotNumber first;
  std::vector<std::int64_t> gpus;
  bool operator==(const DemandCurveSet&) const = default;
};
// What a class and site was at the end of a slot.
struct ClosedPool {
  ClassId gpu_class;
  SiteId site;
  Price price;              // of one GPU's first slot
  std::int64_t demand = 0;  // GPUs leased and waited for; what was only expected is not in it
  std::int64_t supply = 0;
  bool operator==(const ClosedPool&) const = default;
};
// A quarter hour is over. The book goes on to the next one.
struct SlotClosed {
  SlotNumber slot;
  Instant at;
  std::vector<ClosedPool> pools;
  bool operator==(const SlotClosed&) const = default;
};
// Every waiting order was looked at since capacity or prices last changed; none can start now.
struct OrdersReviewed {
  Instant at;
  bool operator==(const OrdersReviewed&) const = default;
};
// Counters that a snapshot needs and no other event carries.
struct CountersSet {
  std::uint64_t next_id = 1;
  Instant last_stamp;
  bool review_due = false;  // capacity or prices changed since the last OrdersReviewed
  SlotNumber open_slot{};   // the first that is not closed; 0: no time has passed yet
  bool operator==(const CountersSet&) const = default;
};

using Event =
    std::variant<PolicySet, ClassDefined, NodeRegistered, NodeReadyChanged, NodeListingChanged,
                 NodeLost, GpuStateChanged, QuoteIssued, QuoteClosed, OrderQueued, OrderClosed,
                 LeaseGranted, LeaseRunning, LeaseExtended, LeaseEnding, LeaseEnded, CountersSet,
                 NodeLeftSupply, PricesMoved, OrdersReviewed, LeaseStarted, LeaseMoved,
                 LeaseDelayed, LeaseCancelled, JobGiven, DemandCurveSet, SlotClosed,
                 NodeRemoved>;

}  // namespace bmgpu::core
