#include "core/support/market.h"
#include "core/support/text.h"

namespace bmgpu::core {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

std::string when(Instant at) {
  const std::int64_t ms = (at - kStart).count();
  const std::string sign = ms < 0 ? "-" : "+";
  const std::int64_t size = ms < 0 ? -ms : ms;
  return sign + number(size / 1000) +
         (size % 1000 == 0 ? "" : "." + number(1000 + size % 1000).substr(1)) + "s";
}

// Equal neighbours as price×count.
std::string list(const std::vector<Price>& prices) {
  std::string text;
  for (std::size_t i = 0; i < prices.size();) {
    std::size_t same = i;
    while (same < prices.size() && prices[same] == prices[i]) {
      ++same;
    }
    text += (text.empty() ? "" : ",") + number(prices[i].count());
    text += same - i > 1 ? "x" + std::to_string(same - i) : "";
    i = same;
  }
  return text;
}

std::string items(const std::vector<RankPlacement>& ranks) {
  std::string text;
  for (const RankPlacement& rank : ranks) {
    for (const Item& item : rank.items) {
      text += " gpu-" + std::to_string(item.gpu.value());
    }
    text += " on node-" + std::to_string(rank.node.value());
  }
  return text;
}

template <typename Tag>
std::string id(const char* kind, Id<Tag> value) {
  return std::string(kind) + "-" + std::to_string(value.value());
}

std::string detail(const std::string& text) { return text.empty() ? "" : ": " + text; }

std::string print_kind(const PolicySet& e) {
  return "policy-set " + std::to_string(e.policy.version.value());
}
std::string print_kind(const ClassDefined& e) {
  return "class-defined " + id("class", e.id) + " " + e.spec.model;
}
std::string print_kind(const NodeRegistered& e) {
  std::string text = "node-registered " + id("node", e.node);
  for (const RegisteredGpu& gpu : e.gpus) {
    text += " " + id("gpu", gpu.id) + "=" + gpu.uuid;
  }
  return text;
}
std::string print_kind(const NodeReadyChanged& e) {
  return id("node", e.node) + (e.ready ? " ready" : " not ready");
}
std::string print_kind(const NodeListingChanged& e) {
  return id("node", e.node) + (e.listing == NodeListing::Draining ? " draining" : " offered");
}
std::string print_kind(const NodeRemoved& e) { return id("node", e.node) + " removed"; }
std::string print_kind(const NodeLeftSupply& e) { return id("node", e.node) + " left supply"; }
std::string print_kind(const NodeLost& e) {
  return id("node", e.node) + " lost, last acknowledged " + when(e.last_acknowledged);
}
std::string print_kind(const GpuStateChanged& e) {
  constexpr const char* kStates[] = {"free", "leased", "sanitizing", "failed"};
  return id("gpu", e.gpu) + " " + kStates[static_cast<int>(e.state)];
}
std::string print_kind(const QuoteIssued& e) {
  std::string text = "quote-issued " + id("quote", e.quote.id) + " total " +
                     number(e.quote.total.count()) + " slots " + list(e.quote.slot_prices) +
                     " expires " + when(e.quote.expires);
  if (e.quote.start != e.quote.issued) {
    text += " start " + when(e.quote.start);
  }
  return text;
}
std::string print_kind(const QuoteClosed& e) { return "quote-closed " + id("quote", e.id); }
std::string print_kind(const OrderQueued& e) {
  return "order-queued " + id("order", e.order.id) +
         (e.order.price_limit.count() > 0 ? " limit " + number(e.order.price_limit.count()) : "");
}
std::string print_kind(const OrderClosed& e) {
  return "order-closed " + id("order", e.id) + " " + print(e.reason);
}
std::string print_kind(const OrdersReviewed&) { return "orders-reviewed"; }
std::string print_kind(const PricesMoved& e) {
  std::string text = "prices-moved";
  for (const PoolPrice& price : e.prices) {
    text += " " + id("class", price.gpu_class) + "@" + id("site", price.site) + "=" +
            number(price.last.count());
  }
  return text;
}
std::string print_kind(const CountersSet&) { return "counters-set"; }
std::string print_kind(const LeaseGranted& e) {
  const Lease& lease = e.lease;
  const bool is_booked = lease.state == LeaseState::Booked;
  return "lease-granted " + id("lease", lease.id) + items(lease.allocations.back().ranks) +
         (is_booked ? " booked from " + when(lease.start) : "") +
         (lease.state == LeaseState::Held ? " held" : "") + " until " + when(lease.end) +
         " quoted " + number(lease.quoted.count()) + " slots " + list(lease.slot_prices);
}
std::string print_kind(const LeaseRunning& e) {
  return "lease-running " + id("lease", e.id) + " since " + when(e.since);
}
std::string print_kind(const LeaseStarted& e) {
  return "lease-started " + id("lease", e.id) + " at " + when(e.at) +
         (e.attempts.empty() ? " without a job" : "");
}
std::string print_kind(const LeaseMoved& e) {
  return "lease-moved " + id("lease", e.id) + items(e.ranks) + detail(e.detail);
}
std::string print_kind(const LeaseDelayed& e) {
  return "lease-delayed " + id("lease", e.id) + detail(e.detail);
}
std::string print_kind(const LeaseCancelled& e) {
  return "lease-cancelled " + id("lease", e.id) + " at " + when(e.at);
}
std::string print_kind(const JobGiven& e) {
  return "job-given " + id("lease", e.id) + (e.attempts.empty() ? "" : ", begins");
}
std::string print_kind(const DemandCurveSet& e) {
  return "demand-curve-set " + id("class", e.gpu_class) + "@" + id("site", e.site) + " from " +
         when(slot_start(e.first)) + " slots " + number(std::ssize(e.gpus));
}
std::string print_kind(const SlotClosed& e) {
  std::string text = "slot-closed " + when(slot_start(e.slot));
  for (const ClosedPool& pool : e.pools) {
    text += " " + id("class", pool.gpu_class) + "@" + id("site", pool.site) + "=" +
            number(pool.price.count()) + " demand " + number(pool.demand) + " of " +
            number(pool.supply);
  }
  return text;
}
std::string print_kind(const LeaseExtended& e) {
  return "lease-extended " + id("lease", e.id) + " until " + when(e.end) + " quoted " +
         number(e.quoted.count()) + " slots " + list(e.slot_prices);
}
std::string print_kind(const LeaseEnding& e) {
  return "lease-ending " + id("lease", e.id) + " " + print(e.reason) + " at " + when(e.at) +
         detail(e.detail);
}
std::string print_kind(const LeaseEnded& e) {
  return "lease-ended " + id("lease", e.id) + " " + print(e.reason) + " at " + when(e.at) +
         " billed " + number(e.billed.count() / 1000) + "s charged " + number(e.charged.count()) +
         " of " + number(e.quoted.count()) +
         (e.fee.count() > 0 ? " fee " + number(e.fee.count()) : "") +
         (e.exit_code ? " exit " + std::to_string(*e.exit_code) : "") + detail(e.detail);
}

std::string print_kind(const Done&) { return "done"; }
std::string print_kind(const Refused& a) {
  return "refused " + print(a.reason.code) + ": " + a.reason.detail;
}
std::string print_kind(const OrderAnswer& a) {
  return id("order", a.order) + (a.lease ? " has " + id("lease", *a.lease) : "") +
         (a.waiting ? " waits " + print(a.waiting->code) + ": " + a.waiting->detail : "");
}
std::string print_kind(const QuoteAnswer& a) {
  std::string text = id("quote", a.quote);
  const auto option = [](const StartOption& one) {
    return when(one.start) + " for " + number(one.total.count());
  };
  text += a.now ? ", now for " + number(a.now->total.count()) : "";
  for (const StartOption& other : a.others) {
    text += ", or " + option(other);
  }
  return text;
}

}  // namespace

std::string print(EndReason reason) {
  constexpr const char* kNames[] = {
      "JobExited",          "Stopped",   "TimeUp",  "NodeLost", "StartFailed", "DeviceCheckFailed",
      "PreparationTimeout", "Cancelled", "Expired", "GpuLost",  "OutOfMemory", "HostUnavailable"};
  return kNames[static_cast<int>(reason)];
}

std::string print(ReasonCode code) {
  constexpr const char* kNames[] = {
      "UnknownGpu",      "TooManyGpus",       "NotEnoughMemory", "NoCapacityNow", "NodeResources",
      "PriceAboveLimit", "NoSupply",          "QuoteExpired",    "QuoteMismatch", "NoSuchObject",
      "AlreadyEnded",    "LeaseTooLong",      "GpusTakenAfter",  "OutOfRange",    "LimitReached",
      "NodeNameTaken",   "DriverNotAccepted", "NodeDraining",    "NodeInUse",     "GpuInUse"};
  return kNames[static_cast<int>(code)];
}

std::string print(const Event& event) {
  return std::visit([](const auto& kind) { return print_kind(kind); }, event);
}

std::string print(const Answer& answer) {
  return std::visit([](const auto& kind) { return print_kind(kind); }, answer);
}

}  // namespace bmgpu::core
