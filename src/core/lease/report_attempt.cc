// ReportAttemptRunning, ReportAttemptEnded: a node's word can shorten what is billed, never
// lengthen it.
#include <algorithm>

#include "core/handlers.h"
#include "core/lease/lease_events.h"

namespace bmgpu::core {

Decision handle(const State& state, const Stamp& stamp, const ReportAttemptRunning& command) {
  const auto found = lease_of_attempt(state, command.lease, command.rank, command.token);
  if (const auto* reason = std::get_if<Reason>(&found)) {
    return refused(*reason);
  }
  const Lease& lease = *std::get<const Lease*>(found);
  if (lease.state != LeaseState::Preparing) {
    return done();  // known already, or ending: it is not metered any more
  }
  const Instant latest = std::min(stamp.now, lease.end);
  return done(LeaseRunning{lease.id, command.rank, std::clamp(command.since, lease.start, latest)});
}

Decision handle(const State& state, const Stamp& stamp, const ReportAttemptEnded& command) {
  const auto found = lease_of_attempt(state, command.lease, command.rank, command.token);
  if (const auto* reason = std::get_if<Reason>(&found)) {
    return refused(*reason);
  }
  if (command.reason == EndReason::Cancelled || command.reason == EndReason::Expired) {
    return refused(ReasonCode::OutOfRange, "a node cannot end a lease for that reason");
  }
  const Lease& lease = *std::get<const Lease*>(found);
  Instant latest = std::min(stamp.now, lease.end);
  if (lease.ending_since) {
    latest = std::min(latest, *lease.ending_since);
  }
  const Instant earliest = std::min(lease.running_since.value_or(lease.start), latest);
  const Instant stopped = std::clamp(command.at, earliest, latest);
  const EndReason reason = lease.ending.value_or(command.reason);
  std::string detail =
      lease.ending_detail.empty() ? cut_detail(command.detail) : lease.ending_detail;
  return done(end_lease(lease, reason, stopped, command.exit_code, std::move(detail)));
}

}  // namespace bmgpu::core
