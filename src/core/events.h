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
// Removes the waiting order of the same OrderId, if any; the items become Leased.
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
struct LeaseExtended {
  LeaseId id;
  Instant end;
  std::vector<Price> slot_prices;  // the whole list, old prices unchanged
  PolicyVersion policy;
  Money quoted;                    // the most that it can cost now
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
  Duration billed;   // wall time charged; times gpus = GPU time
  Money charged;
  Money quoted;      // the most that it could have cost
  std::optional<std::int32_t> exit_code;
  std::string detail;
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
  bool operator==(const CountersSet&) const = default;
};

using Event =
    std::variant<PolicySet, ClassDefined, NodeRegistered, NodeReadyChanged, NodeListingChanged,
                 NodeLost, GpuStateChanged, QuoteIssued, QuoteClosed, OrderQueued, OrderClosed,
                 LeaseGranted, LeaseRunning, LeaseExtended, LeaseEnding, LeaseEnded, CountersSet,
                 NodeLeftSupply, PricesMoved, OrdersReviewed>;

}  // namespace bmgpu::core
