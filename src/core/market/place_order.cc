#include <algorithm>

#include "core/handlers.h"
#include "core/ledger/charge.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

// Prices of a quote taken at `now`: each UTC slot keeps its quoted price. A start later than quoted
// moves the lease to slots that cost the same or less, and the total stays capped by the quote's.
std::vector<Price> prices_from(const Quote& quote, Instant now, Instant until) {
  const auto last = std::ssize(quote.slot_prices) - 1;
  const std::int64_t shift = (slot_of(now) - slot_of(quote.start)).count();
  std::vector<Price> prices;
  for (std::int64_t i = 0; i < slots_touched(now, until); ++i) {
    prices.push_back(quote.slot_prices[static_cast<std::size_t>(std::min(shift + i, last))]);
  }
  return prices;
}

std::variant<Candidate, Reason> place_at_quote(const State& state, const Quote& quote,
                                               Instant now) {
  const PoolKey key{quote.gpu_class, quote.site};
  const auto node = best_fit(state, state.pools.at(key), quote.resources, quote.owner_floor);
  if (!node) {
    return Reason{ReasonCode::NoCapacityNow, "the GPUs of the quote have been taken meanwhile"};
  }
  const Instant until = priced_until(now, now + quote.duration, state.policy.billed_min);
  std::vector<Price> prices = prices_from(quote, now, until);
  const Money total = std::min(charge_between(prices, now, now, until), quote.total);
  return Candidate{key, *node, quote.owner_floor, std::move(prices), total};
}

std::variant<const Quote*, Reason> usable_quote(const State& state, const PlaceOrder& command,
                                                const Resources& resources, Instant now) {
  const auto it = state.quotes.find(command.quote);
  if (it == state.quotes.end() || it->second.expires <= now) {
    return Reason{ReasonCode::QuoteExpired,
                  "the quote has expired or was taken; ask for a new one"};
  }
  const Quote& quote = it->second;
  if (quote.tenant != command.tenant) {
    return Reason{ReasonCode::QuoteExpired,
                  "the quote has expired or was taken; ask for a new one"};
  }
  if (quote.resources != resources || quote.duration != command.duration) {
    return Reason{ReasonCode::QuoteMismatch,
                  "the quote is for other resources or another duration; ask for a new one"};
  }
  const Instant until =
      priced_until(quote.start, quote.start + quote.duration, state.policy.billed_min);
  if (!within_limit(quote.slot_prices, quote.start, until, resources.gpus, command.price_limit)) {
    return Reason{ReasonCode::PriceAboveLimit, "the quote is above the limit of " +
                                                   per_hour(command.price_limit) + " per GPU-hour"};
  }
  return &quote;
}

// Where and at which prices the order can start now, within its limit.
std::variant<Candidate, Reason> place_now(const State& state, const Order& order,
                                          const Quote* quote, Instant now) {
  if (state.review_due && next_to_serve(state, now)) {
    return Reason{ReasonCode::NoCapacityNow, "orders that waited are served first"};
  }
  auto place = quote != nullptr
                   ? place_at_quote(state, *quote, now)
                   : cheapest_place(state, order.resources, now, order.duration, nullptr);
  if (const auto* candidate = std::get_if<Candidate>(&place)) {
    if (auto reason = above_limit(state, *candidate, order.resources.gpus, now, order.duration,
                                  order.price_limit)) {
      return std::move(*reason);
    }
  }
  return place;
}

Decision queue_order(const State& state, Order order, const Quote* quote, Reason reason) {
  if (std::ssize(state.waiting) >= Limits::kWaitingOrdersMax) {
    return refused(ReasonCode::LimitReached, "too many orders wait already; try again later");
  }
  if (quote != nullptr) {  // consent was given to the quote's price, and to no higher one
    const Instant until =
        priced_until(quote->start, quote->start + quote->duration, state.policy.billed_min);
    const Price quoted =
        average_price(quote->slot_prices, quote->start, until, order.resources.gpus);
    order.price_limit =
        order.price_limit.count() == 0 ? quoted : std::min(order.price_limit, quoted);
  }
  Decision decision{{}, {}, OrderAnswer{order.id, std::nullopt, std::move(reason)}};
  decision.events.push_back(OrderQueued{std::move(order)});
  if (quote != nullptr) {
    decision.events.push_back(QuoteClosed{quote->id});
  }
  return decision;
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const PlaceOrder& command) {
  auto checked = checked_resources(command.resources);
  if (auto* reason = std::get_if<Reason>(&checked)) {
    return refused(std::move(*reason));
  }
  if (auto reason = check_duration(command.duration)) {
    return refused(std::move(*reason));
  }
  if (auto reason = check_price_limit(command.price_limit)) {
    return refused(std::move(*reason));
  }
  Order order{OrderId(state.next_id),
              command.tenant,
              std::get<Resources>(std::move(checked)),
              command.duration,
              command.price_limit,
              command.restart,
              stamp.now,
              ClassId(),
              SiteId()};
  const Quote* quote = nullptr;
  if (!command.quote.is_none()) {
    auto usable = usable_quote(state, command, order.resources, stamp.now);
    if (auto* reason = std::get_if<Reason>(&usable)) {
      return refused(std::move(*reason));
    }
    quote = std::get<const Quote*>(usable);
  }
  auto place = place_now(state, order, quote, stamp.now);
  if (const auto* candidate = std::get_if<Candidate>(&place)) {
    if (std::ssize(state.leases) >= Limits::kLiveLeasesMax) {
      return refused(ReasonCode::LimitReached, "the market has as many leases as it can hold");
    }
    const PolicyVersion policy = quote != nullptr ? quote->policy : state.policy.version;
    Decision decision{{}, {}, OrderAnswer{order.id, LeaseId(order.id.value()), std::nullopt}};
    decision.events.push_back(grant(state, stamp, order, *candidate, policy));
    if (quote != nullptr) {
      decision.events.push_back(QuoteClosed{quote->id});
    }
    return decision;
  }
  auto home = home_pool(state, order.resources);
  if (auto* never = std::get_if<Reason>(&home)) {
    return refused(std::move(*never));
  }
  auto& reason = std::get<Reason>(place);
  if (command.refuse_if_unavailable) {
    return refused(std::move(reason));
  }
  order.gpu_class = std::get<PoolKey>(home).gpu_class;
  order.site = std::get<PoolKey>(home).site;
  return queue_order(state, std::move(order), quote, std::move(reason));
}

}  // namespace bmgpu::core
