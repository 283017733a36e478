// A tick does one kind of work at a time, so that each decision sees a settled state: what is due
// first, ends of slots among it, then prices, then one booked lease in trouble or one waiting
// order. next_deadline() stays in the past until nothing is left.
#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "core/book/close_slots.h"
#include "core/book/start_booked.h"
#include "core/handlers.h"
#include "core/lease/lease_events.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kDueMax = 1000;  // events in one tick

// What becomes of a lease whose time has come. One that moves must be decided alone.
std::vector<Event> due_lease(const State& state, const Stamp& stamp, const Lease& lease,
                             Instant at) {
  switch (lease.state) {
    case LeaseState::Booked:
      return start_or_delay(state, stamp, lease);
    case LeaseState::Cancelled:
      return {settle_cancelled(state, lease, at)};
    case LeaseState::Held:  // nothing runs that a node would have to end
      return {end_lease(lease, EndReason::TimeUp, at, std::nullopt, "")};
    case LeaseState::Preparing:
      return {LeaseEnding{lease.id, EndReason::PreparationTimeout, at,
                          "the node did not make it ready in time", std::nullopt}};
    case LeaseState::Running:
      return {LeaseEnding{lease.id, EndReason::TimeUp, at, "", std::nullopt}};
    case LeaseState::Ending:
      break;
  }
  check(false, "tick: a lease without a deadline");
  return {};
}

std::vector<Event> due_events(const State& state, const Stamp& stamp, const Deadline& deadline) {
  switch (deadline.kind) {
    case DeadlineKind::Lease:
      return due_lease(state, stamp, state.leases.at(LeaseId(deadline.id)), deadline.at);
    case DeadlineKind::Quote:
      return {QuoteClosed{QuoteId(deadline.id)}};
    case DeadlineKind::Order: {
      const Order& order = state.waiting.at(OrderId(deadline.id));
      return {OrderClosed{order.id, order.tenant, EndReason::Expired}};
    }
    case DeadlineKind::Supply:
      return {NodeLeftSupply{NodeId(deadline.id)}};
  }
  check(false, "tick: an unknown deadline");
  return {};
}

// Whether what comes next must see it done: it changes the book, or adds a deadline.
bool ends_batch(const Event& event) {
  const auto* ended = std::get_if<LeaseEnded>(&event);
  return std::holds_alternative<LeaseMoved>(event) || std::holds_alternative<LeaseDelayed>(event) ||
         (ended != nullptr && ended->reason != EndReason::Cancelled);
}

// What is due before `until`.
Decision end_what_is_due(const State& state, const Stamp& stamp, Instant until) {
  Decision decision = done();
  for (const Deadline& deadline : state.deadlines) {
    if (deadline.at >= until || decision.events.size() >= kDueMax) {
      break;
    }
    std::vector<Event> events = due_events(state, stamp, deadline);
    const bool moves = std::holds_alternative<LeaseMoved>(events.front());
    if (moves && !decision.events.empty()) {
      break;
    }
    const bool is_last = std::any_of(events.begin(), events.end(), ends_batch);
    std::move(events.begin(), events.end(), std::back_inserter(decision.events));
    if (is_last) {
      break;
    }
  }
  return decision;
}

// Deadlines and the ends of slots in the order of their times; of equal ones the slot ends first.
// Empty: nothing is due.
Decision advance_time(const State& state, const Stamp& stamp) {
  const auto close = next_close(state);
  const Instant after_now = stamp.now + milliseconds(1);
  const Instant due = state.deadlines.empty() ? after_now : state.deadlines.begin()->at;
  if (close && *close <= stamp.now && *close <= due) {
    return Decision{close_slots(state, stamp.now, std::min(stamp.now, due)), {}, Done{}};
  }
  return end_what_is_due(state, stamp, close ? std::min(*close, after_now) : after_now);
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
    const Price price = slot_price(state.policy, state.slot_weights,
                                   next_gpu(state, key, pool, now, now, Price()), 0);
    if (price != pool.last_price) {
      moved.prices.push_back(PoolPrice{key.gpu_class, key.site, price});
    }
  }
  return done(std::move(moved));
}

Decision serve_one(const State& state, const Stamp& stamp) {
  if (auto events = help_one_booked(state, stamp); !events.empty()) {
    return Decision{std::move(events), {}, Done{}};
  }
  const auto next = next_to_serve(state, stamp.now);
  if (!next || std::ssize(state.leases) >= Limits::kLiveLeasesMax) {
    return done(OrdersReviewed{stamp.now});
  }
  const auto& [order, candidate] = *next;
  return done(grant(state, stamp, *order, candidate, state.policy.version));
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const Tick&) {
  if (Decision decision = advance_time(state, stamp); !decision.events.empty()) {
    return decision;
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
  if (const auto close = next_close(state)) {
    at(*close);
  }
  if (state.review_due) {
    at(state.last_stamp);
  }
  return next;
}

}  // namespace bmgpu::core
