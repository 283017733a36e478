#include "base/check.h"
#include "core/apply_parts.h"
#include "core/book/stays.h"
#include "core/indexes.h"

namespace bmgpu::core {

void apply_event(State& state, const PolicySet& event) {
  check(event.policy.version > state.policy.version, "apply: an old policy version");
  state.policy = event.policy;
  refresh_after_policy(state);
  note_change(state);
}

void apply_event(State& state, const ClassDefined& event) {
  const bool is_new =
      state.classes.emplace(event.id, make_class(state.policy, event.id, event.spec)).second;
  check(is_new, "apply: a class twice");
  note_id(state, event.id.value());
}

void apply_event(State& state, const QuoteIssued& event) {
  const bool is_new = state.quotes.emplace(event.quote.id, event.quote).second;
  check(is_new, "apply: a quote twice");
  state.deadlines.insert(deadline_of(state, event.quote));
  note_id(state, event.quote.id.value());
  note_time(state, event.quote.issued);
}

void apply_event(State& state, const QuoteClosed& event) {
  const auto it = state.quotes.find(event.id);
  check(it != state.quotes.end(), "apply: no such quote");
  state.deadlines.erase(deadline_of(state, it->second));
  state.quotes.erase(it);
}

void apply_event(State& state, const OrderQueued& event) {
  const bool is_new = state.waiting.emplace(event.order.id, event.order).second;
  check(is_new, "apply: an order twice");
  add_waiting(state, event.order);
  note_id(state, event.order.id.value());
  note_time(state, event.order.placed);
}

void apply_event(State& state, const OrderClosed& event) {
  const auto it = state.waiting.find(event.id);
  check(it != state.waiting.end(), "apply: no such waiting order");
  remove_waiting(state, it->second);
  const auto tenant = state.orders_of_tenant.find(event.tenant);
  check(tenant != state.orders_of_tenant.end(), "apply: another tenant's order");
  tenant->second.erase(event.id);
  if (tenant->second.empty()) {
    state.orders_of_tenant.erase(tenant);
  }
  state.waiting.erase(it);
  note_change(state);
}

void apply_event(State& state, const OrdersReviewed& event) {
  state.review_due = false;
  note_time(state, event.at);
}

void apply_event(State& state, const PricesMoved& event) {
  for (const PoolPrice& price : event.prices) {
    PoolRecord& pool = ensure_pool(state, PoolKey{price.gpu_class, price.site});
    pool.last_price = price.last;
    refresh_supply(pool);
    refresh_demand(pool);
  }
  state.last_price_tick = event.at;
  note_time(state, event.at);
  note_change(state);
}

void apply_event(State& state, const CountersSet& event) {
  state.next_id = event.next_id;
  state.last_stamp = event.last_stamp;
  state.review_due = event.review_due;
  if (event.open_slot > state.open_slot) {
    advance_book(state, event.open_slot);
  }
}

}  // namespace bmgpu::core
