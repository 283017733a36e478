// What the market promised, as people outside see it: built from what became durable and from the
// answers that arrived, never from the market's state.
//
// Rules: acknowledged-lost, idempotency, charge, twice-ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/core.h"
#include "sim/chaos/frames.h"
#include "sim/engine/verdict.h"

namespace bmgpu::sim {

struct LeaseFacts {
  AccountId tenant;
  NodeId node;
  std::int64_t gpus = 0;
  Instant start;
  Instant end;  // extensions included
  Money quoted;
  Duration billed_min;
  std::optional<Instant> ending;  // when that became durable
  bool ended = false;
};

class Promises {
 public:
  explicit Promises(Verdict& verdict) : verdict_(verdict) {}

  void committed(const std::vector<core::Event>& events, Instant now);
  // An answer that its caller got.
  void answered(const Request& request, const Reply& reply, Instant now);
  // The market has started again from its disk.
  void restarted(const core::State& state, Instant now);

  const LeaseFacts* lease(LeaseId id) const;
  // What really ran, for the charge.
  void job_started(LeaseId id, Instant at) { ran_[id].since = at; }
  void job_stopped(LeaseId id, Instant at);

 private:
  struct Placed {
    OrderId order;
    Money total;
  };
  struct Ran {
    Duration over;
    std::optional<Instant> since;
  };
  void check_charge(const core::LeaseEnded& ended, Instant now);
  void place_answered(const Request& request, const core::PlaceOrder& command, const Reply& reply,
                      Instant now);

  Verdict& verdict_;
  std::map<LeaseId, LeaseFacts> leases_;
  std::map<OrderId, AccountId> waiting_;   // durable, neither leased nor closed
  std::map<OrderId, AccountId> promised_;  // acknowledged
  std::map<std::pair<AccountId, std::string>, Reply> answers_;
  std::map<QuoteId, Money> quotes_;
  std::map<LeaseId, Ran> ran_;
};

}  // namespace bmgpu::sim
