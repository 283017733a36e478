#include "sim/checkers/promises.h"

#include <algorithm>

namespace bmgpu::sim {
namespace {

// Clocks of nodes are off by up to two seconds, reports take time, and pauses and restarts of the
// market hide the last moments of a node that dies just then.
constexpr Duration kClockTolerance = seconds(30);

std::string lease_text(LeaseId id) { return "lease-" + std::to_string(id.value()); }

}  // namespace

const LeaseFacts* Promises::lease(LeaseId id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

void Promises::job_stopped(LeaseId id, Instant at) {
  Ran& ran = ran_[id];
  if (ran.since) {
    ran.over += at - *ran.since;
    ran.since.reset();
  }
}

void Promises::committed(const std::vector<core::Event>& events, Instant now) {
  for (const core::Event& event : events) {
    if (const auto* queued = std::get_if<core::OrderQueued>(&event)) {
      waiting_[queued->order.id] = queued->order.tenant;
    } else if (const auto* closed = std::get_if<core::OrderClosed>(&event)) {
      waiting_.erase(closed->id);
      promised_.erase(closed->id);
    } else if (const auto* granted = std::get_if<core::LeaseGranted>(&event)) {
      const core::Lease& lease = granted->lease;
      waiting_.erase(lease.order);
      leases_[lease.id] = {lease.tenant,
                           lease.allocations.back().ranks.front().node,
                           lease.gpus,
                           lease.start,
                           lease.end,
                           lease.quoted,
                           lease.billed_min,
                           std::nullopt,
                           false};
    } else if (const auto* extended = std::get_if<core::LeaseExtended>(&event)) {
      leases_.at(extended->id).end = extended->end;
      leases_.at(extended->id).quoted = extended->quoted;
    } else if (const auto* cancelled = std::get_if<core::LeaseCancelled>(&event)) {
      leases_.at(cancelled->id).ending = now;
    } else if (const auto* ending = std::get_if<core::LeaseEnding>(&event)) {
      leases_.at(ending->id).ending = now;
    } else if (const auto* ended = std::get_if<core::LeaseEnded>(&event)) {
      check_charge(*ended, now);
    }
  }
}

void Promises::check_charge(const core::LeaseEnded& ended, Instant now) {
  LeaseFacts& facts = leases_.at(ended.id);
  const std::string name = lease_text(ended.id);
  if (facts.ended) {
    verdict_.fail(now, "twice-ended", name + " ended twice");
  }
  facts.ended = true;
  facts.ending = facts.ending ? facts.ending : now;
  promised_.erase(ended.order);
  if (ended.charged > facts.quoted) {
    verdict_.fail(now, "charge",
                  name + " was charged " + std::to_string(ended.charged.count()) + " and quoted " +
                      std::to_string(facts.quoted.count()));
  }
  const Ran& ran = ran_[ended.id];
  const Duration total = ran.over + (ran.since ? now - *ran.since : Duration());
  const bool never_ran = !ran.since && ran.over == Duration();
  const Duration most =
      never_ran ? Duration() : std::max(total + kClockTolerance, facts.billed_min);
  if (ended.billed > most) {
    verdict_.fail(now, "charge",
                  name + " was billed for " + seconds_text(ended.billed) +
                      " s and its node ran it for " + seconds_text(total) + " s");
  }
}

void Promises::answered(const Request& request, const Reply& reply, Instant now) {
  if (!reply.available) {
    return;
  }
  const auto [before, is_first] = answers_.try_emplace({request.account, request.key}, reply);
  if (!is_first && before->second != reply) {
    verdict_.fail(now, "idempotency", "request " + request.key + " got two different answers");
  }
  const auto* command = std::get_if<core::Command>(&request.call);
  if (!is_first || reply.refused || command == nullptr) {
    return;
  }
  if (const auto* place = std::get_if<core::PlaceOrder>(command)) {
    place_answered(request, *place, reply, now);
  } else if (std::holds_alternative<core::RequestQuote>(*command)) {
    quotes_[reply.quote] = reply.total;
  } else if (const auto* extend = std::get_if<core::ExtendLease>(command)) {
    const LeaseFacts* facts = lease(LeaseId(extend->order.value()));
    if (facts == nullptr || facts->end < reply.lease_end) {
      verdict_.fail(now, "acknowledged-lost",
                    "an extension of order " + std::to_string(extend->order.value()) +
                        " was acknowledged and is not durable");
    }
  } else if (const auto* stop = std::get_if<core::StopOrder>(command)) {
    const LeaseFacts* facts = lease(LeaseId(stop->order.value()));
    if (waiting_.contains(stop->order) || (facts != nullptr && !facts->ending)) {
      verdict_.fail(now, "acknowledged-lost",
                    "the stop of order " + std::to_string(stop->order.value()) +
                        " was acknowledged and is not durable");
    }
  }
}

void Promises::place_answered(const Request& request, const core::PlaceOrder& command,
                              const Reply& reply, Instant now) {
  const LeaseFacts* facts = lease(LeaseId(reply.order.value()));
  const bool over = facts != nullptr && facts->ended;
  if (!over) {
    promised_[reply.order] = request.account;
  }
  if (reply.has_lease && facts == nullptr) {
    verdict_.fail(now, "acknowledged-lost",
                  "order " + std::to_string(reply.order.value()) +
                      " was acknowledged with a lease "
                      "that is not durable");
  }
  const auto quote = quotes_.find(command.quote);
  if (reply.has_lease && quote != quotes_.end() && reply.total > quote->second) {
    verdict_.fail(now, "charge",
                  "order " + std::to_string(reply.order.value()) + " may cost more than its quote");
  }
}

void Promises::restarted(const core::State& state, Instant now) {
  const auto is_known = [&](OrderId order) {
    const LeaseFacts* facts = lease(LeaseId(order.value()));
    return state.waiting.contains(order) || state.leases.contains(LeaseId(order.value())) ||
           (facts != nullptr && facts->ended);
  };
  for (const auto& [order, tenant] : promised_) {
    if (!is_known(order) && waiting_.contains(order)) {
      verdict_.fail(now, "acknowledged-lost",
                    "order " + std::to_string(order.value()) + " of account " +
                        std::to_string(tenant.value()) + " is gone after a restart");
    }
  }
  for (const auto& [id, facts] : leases_) {
    const bool is_live = state.leases.contains(id);
    if (is_live == facts.ended) {
      verdict_.fail(now, "acknowledged-lost",
                    lease_text(id) + (is_live ? " lives again" : " is gone") + " after a restart");
    }
  }
}

}  // namespace bmgpu::sim
