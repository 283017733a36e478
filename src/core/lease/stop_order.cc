#include "core/book/stays.h"
#include "core/handlers.h"
#include "core/lease/lease_events.h"

namespace bmgpu::core {
namespace {

// What is booked ahead is given back: at the market's cost if it could not have been used or if an
// operator says so, else for a fee.
Event give_back(const State& state, Instant now, const Lease& lease, AccountId by) {
  if (by.is_none() || lease.start <= now || is_displaced(state, lease)) {
    return end_lease(lease, EndReason::Cancelled, now, std::nullopt, "");
  }
  return LeaseCancelled{lease.id, now};
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const StopOrder& command) {
  const auto is_callers = [&](AccountId tenant) {
    return command.tenant.is_none() || command.tenant == tenant;
  };
  const auto waiting = state.waiting.find(command.order);
  if (waiting != state.waiting.end() && is_callers(waiting->second.tenant)) {
    return Decision{{OrderClosed{command.order, waiting->second.tenant, EndReason::Cancelled}},
                    {},
                    OrderAnswer{command.order, std::nullopt, std::nullopt}};
  }
  const auto leased = state.leases.find(LeaseId(command.order.value()));
  if (leased == state.leases.end() || !is_callers(leased->second.tenant)) {
    return refused(ReasonCode::NoSuchObject, "there is no such order");
  }
  const Lease& lease = leased->second;
  Decision decision{{}, {}, OrderAnswer{command.order, lease.id, std::nullopt}};
  if (lease.state == LeaseState::Booked) {
    decision.events.push_back(give_back(state, stamp.now, lease, command.tenant));
  } else if (lease.state == LeaseState::Held) {  // nothing runs that a node would have to end
    decision.events.push_back(
        end_lease(lease, EndReason::Stopped, std::min(stamp.now, lease.end), std::nullopt, ""));
  } else if (lease.state != LeaseState::Ending && lease.state != LeaseState::Cancelled) {
    decision.events.push_back(LeaseEnding{lease.id, EndReason::Stopped,
                                          std::min(stamp.now, lease.end), "", std::nullopt});
  }
  return decision;
}

}  // namespace bmgpu::core
