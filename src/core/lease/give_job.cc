// GiveJob: a lease that was reserved gets its job, before its start or while it is held.
#include "core/handlers.h"
#include "core/market/orders.h"

namespace bmgpu::core {

Decision handle(const State& state, const Stamp& stamp, const GiveJob& command) {
  const auto it = state.leases.find(LeaseId(command.order.value()));
  if (it == state.leases.end() || it->second.tenant != command.tenant) {
    return refused(ReasonCode::NoSuchObject, "there is no such reservation");
  }
  const Lease& lease = it->second;
  if (lease.state == LeaseState::Cancelled || lease.state == LeaseState::Ending) {
    return refused(ReasonCode::AlreadyEnded, "the reservation is over; book another one");
  }
  if (!lease.without_job) {
    return refused(ReasonCode::AlreadyEnded,
                   "the lease has a job already; another one needs a lease of its own");
  }
  if (lease.state == LeaseState::Held && lease.end <= stamp.now) {
    return refused(ReasonCode::AlreadyEnded, "the reservation's time is up; book another one");
  }
  JobGiven event{lease.id, stamp.now, command.restart, {}};
  if (lease.state == LeaseState::Held) {
    event.attempts = first_attempts(stamp, lease.allocations.back().ranks.size());
  }
  Decision decision{{}, {}, OrderAnswer{lease.order, lease.id, std::nullopt}};
  decision.events.push_back(std::move(event));
  return decision;
}

}  // namespace bmgpu::core
