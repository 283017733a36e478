// What can be asked of the market. Values only; each field is checked by decide().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/types.h"

namespace bmgpu::core {

// --- operators -------------------------------------------------------------------------------
struct SetPolicy {
  MarketPolicy policy;  // its version is assigned by decide
};
struct DrainNode {
  NodeId node;
};
struct ResumeNode {
  NodeId node;
};
// The GPUs that are expected to be wanted, slot by slot, in one class and site: a forecast. It
// replaces the one before; slots that it does not name are expected like a week ago.
struct SetDemandCurve {
  ClassId gpu_class;
  SiteId site;
  SlotNumber first;
  std::vector<std::int64_t> gpus;  // by slot from `first` on; empty: no forecast any more
};

// The node and its GPUs leave the market. Refused while a lease lives there or the node is ready.
struct RemoveNode {
  NodeId node;
};

// --- nodes (sent by bmd on behalf of an authenticated node)
// ---------------------------------------- Inventory: the first makes the node known, later ones
// update it. GPUs that are gone become Failed.
struct RegisterNode {
  NodeId node;
  AccountId owner;
  SiteId site;
  NodeCapacity capacity;
  std::vector<GpuDescription> gpus;
  Driver driver = Driver::Real;
  Price owner_floor;
};
// Whether the node may be offered, as all gates together say. Leases are not touched.
struct SetNodeReady {
  NodeId node;
  bool ready = false;
};
// The node starts anew: what its GPUs did meanwhile is not known. Free ones become Sanitizing and a
// drained node is offered again. Refused while a lease lives there.
struct RenewNode {
  NodeId node;
};
// Lost for good as far as leases go: each lease on it ends, billed up to `last_acknowledged`.
struct DeclareNodeLost {
  NodeId node;
  Instant last_acknowledged;
};
struct ReportGpu {
  NodeId node;
  std::string uuid;
  bool ok = true;     // false: fails it; its lease ends with GpuLost
  bool clean = true;  // allows sanitizing → free
};
// The device check passed; metering starts at `since`.
struct ReportAttemptRunning {
  LeaseId lease;
  std::uint32_t rank = 0;
  FencingToken token;
  Instant since;
};
// The node confirmed that nothing of the attempt is left.
struct ReportAttemptEnded {
  LeaseId lease;
  std::uint32_t rank = 0;
  FencingToken token;
  EndReason reason = EndReason::JobExited;
  Instant at;
  std::optional<std::int32_t> exit_code;
  std::string detail;
};

// --- tenants ---------------------------------------------------------------------------------
struct RequestQuote {
  AccountId tenant;
  Resources resources;
  Duration duration;
  Price price_limit;  // 0 = none
  TimeWish wish{};
};
struct PlaceOrder {
  AccountId tenant;
  Resources resources;
  Duration duration;
  Price price_limit;  // average per GPU-slot; 0 = none
  QuoteId quote;      // none: priced now. Its wish for time counts, not this order's
  RestartPolicy restart = RestartPolicy::HostFailure;
  bool refuse_if_unavailable = false;
  TimeWish wish{};
  bool without_job = false;  // a reservation: the GPUs are held and metered from the start on
};
// A job for a lease that was reserved without one. Before its start it becomes an ordinary booking.
struct GiveJob {
  AccountId tenant;
  OrderId order;
  RestartPolicy restart = RestartPolicy::HostFailure;
};
// Ends a lease or cancels a waiting order. By its tenant, or by an operator (tenant none).
struct StopOrder {
  AccountId tenant;
  OrderId order;
};
struct ExtendLease {
  AccountId tenant;
  OrderId order;
  Duration by;
  Price price_limit;
};

// --- time ------------------------------------------------------------------------------------
// Ends what is over, starts what was booked, closes slots, expires quotes and old orders, serves
// waiting orders, moves prices. Sent at least once a second and at next_deadline().
struct Tick {};

using Command =
    std::variant<SetPolicy, DrainNode, ResumeNode, RegisterNode, SetNodeReady, DeclareNodeLost,
                 ReportGpu, ReportAttemptRunning, ReportAttemptEnded, RequestQuote, PlaceOrder,
                 StopOrder, ExtendLease, SetDemandCurve, GiveJob, RemoveNode, RenewNode, Tick>;

}  // namespace bmgpu::core
