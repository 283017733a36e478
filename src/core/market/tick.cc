// A tick does one kind of work at a time, so that each decision sees a settled state: what is due
// first, then prices, then one waiting order. next_deadline() stays in the past until nothing is
// left.
#include "base/check.h"
#include "core/handlers.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kDueMax = 1000;  // events in one tick

Event due_event(const State& state, const Deadline& deadline) {
  switch (deadline.kind) {
    case DeadlineKind::Lease: {
      const Lease& lease = state.leases.at(LeaseId(deadline.id));
      const bool ran = lease.state == LeaseState::Running;
      return LeaseEnding{lease.id, ran ? EndReason::TimeUp : EndReason::PreparationTimeout,
                         deadline.at, ran ? "" : "the node did not make it ready in time",
                         std::nullopt};
    }
    case DeadlineKind::Quote:
      return QuoteClosed{QuoteId(deadline.id)};
    case DeadlineKind::Order: {
      const Order& order = state.waiting.at(OrderId(deadline.id));
      return OrderClosed{order.id, order.tenant, EndReason::Expired};
    }
    case DeadlineKind::Supply:
      return NodeLeftSupply{NodeId(deadline.id)};
  }
  check(false, "tick: an unknown deadline");
  return OrdersReviewed{};
}

Decision end_what_is_due(const State& state, Instant now) {
  Decision decision = done();
  for (const Deadline& deadline : state.deadlines) {
    if (deadline.at > now || decision.events.size() == kDueMax) {
      break;
    }
    decision.events.push_back(due_event(state, deadline));
  }
  return decision;
}

bool prices_are_due(const State& state, Instant now) {
  return !state.pools.empty() && now - state.last_price_tick >= state.policy.price_tick;
}

Decision move_prices(const State& state, Instant now) {
  PricesMoved moved{now, {}};
  for (const auto& [key, pool] : state.pools) {
    if (pool.supply == 0) {
      continue;
    }
    const Price price =
        slot_price(state.policy, state.slot_weights, next_gpu(state, key, pool, Price()), 0);
    if (price != pool.last_price) {
      moved.prices.push_back(PoolPrice{key.gpu_class, key.site, price});
    }
  }
  return done(std::move(moved));
}

Decision serve_one(const State& state, const Stamp& stamp) {
  const auto next = next_to_serve(state, stamp.now);
  if (!next || std::ssize(state.leases) >= Limits::kLiveLeasesMax) {
    return done(OrdersReviewed{stamp.now});
  }
  const auto& [order, candidate] = *next;
  return done(grant(state, stamp, *order, candidate, state.policy.version));
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const Tick&) {
  if (!state.deadlines.empty() && state.deadlines.begin()->at <= stamp.now) {
    return end_what_is_due(state, stamp.now);
  }
  if (prices_are_due(state, stamp.now)) {
    return move_prices(state, stamp.now);
  }
  if (state.review_due) {
    return serve_one(state, stamp);
  }
  return done();
}

std::optional<Instant> next_deadline(const State& state) {
  std::optional<Instant> next;
  const auto at = [&](Instant when) { next = next ? std::min(*next, when) : when; };
  if (!state.deadlines.empty()) {
    at(state.deadlines.begin()->at);
  }
  if (!state.pools.empty()) {
    at(state.last_price_tick + state.policy.price_tick);
  }
  if (state.review_due) {
    at(state.last_stamp);
  }
  return next;
}

}  // namespace bmgpu::core
