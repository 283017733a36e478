#include "core/handlers.h"

namespace bmgpu::core {

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
  if (lease.state != LeaseState::Ending) {
    decision.events.push_back(LeaseEnding{lease.id, EndReason::Stopped,
                                          std::min(stamp.now, lease.end), "", std::nullopt});
  }
  return decision;
}

}  // namespace bmgpu::core
