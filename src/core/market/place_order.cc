#include <algorithm>

#include "core/book/window.h"
#include "core/book/wish.h"
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

Reason taken_meanwhile() {
  return Reason{ReasonCode::NoCapacityNow, "the GPUs of the quote have been taken meanwhile"};
}

std::variant<Candidate, Reason> place_at_quote(const State& state, const Quote& quote,
                                               Instant now) {
  const PoolKey key{quote.gpu_class, quote.site};
  if (quote.start > now) {
    const Interval span{quote.start, quote.start + quote.duration};
    const auto node = book_fit(state, key, quote.resources, span, quote.owner_floor);
    return node ? std::variant<Candidate, Reason>(Candidate{
                      key, *node, quote.start, quote.owner_floor, quote.slot_prices, quote.total})
                : taken_meanwhile();
  }
  const auto node = best_fit(state, key, state.pools.at(key), quote.resources, quote.owner_floor,
                             free_now(state, now, quote.duration));
  if (!node) {
    return taken_meanwhile();
  }
  const Instant until = priced_until(now, now + quote.duration, state.policy.billed_min);
  std::vector<Price> prices = prices_from(quote, now, until);
  const Money total = std::min(charge_between(prices, now, now, until), quote.total);
  return Candidate{key, *node, now, quote.owner_floor, std::move(prices), total};
}

// The quote that the order names, or why it cannot be taken.
std::variant<const Quote*, Reason> named_quote(const State& state, const PlaceOrder& command,
                                               const Resources& resources) {
  const auto it = state.quotes.find(command.quote);
  if (it == state.quotes.end() || it->second.tenant != command.tenant) {
    return Reason{ReasonCode::QuoteExpired,
                  "the quote has expired or was taken; ask for a new one"};
  }
  const Quote& quote = it->second;
  if (quote.resources != resources || quote.duration != command.duration ||
      (command.wish != TimeWish{} && command.wish != quote.wish)) {
    return Reason{ReasonCode::QuoteMismatch,
                  "the quote is for other resources, another duration or other times; ask for a "
                  "new one"};
  }
  return &quote;
}

// Whether its prices still hold and are within the order's limit.
std::optional<Reason> check_quote(const State& state, const Quote& quote, Price limit,
                                  Instant now) {
  if (quote.expires <= now && limit.count() == 0) {
    return Reason{ReasonCode::QuoteExpired,
                  "the quote has expired; ask for a new one, or name the most that you would pay "
                  "now"};
  }
  const Instant until =
      priced_until(quote.start, quote.start + quote.duration, state.policy.billed_min);
  if (quote.expires > now &&
      !within_limit(quote.slot_prices, quote.start, until, quote.resources.gpus, limit)) {
    return Reason{ReasonCode::PriceAboveLimit,
                  "the quote is above the limit of " + per_hour(limit) + " per GPU-hour"};
  }
  return std::nullopt;
}

// Where and at which prices the order can start, within its limit.
std::variant<Candidate, Reason> find_place(const State& state, const Order& order, TimeWish wish,
                                           const Quote* quote, Instant now) {
  const bool starts_now = wish.start == StartKind::Now;
  if (state.review_due && next_to_serve(state, now)) {
    const bool at_once = quote != nullptr ? quote->start <= now
                                          : starts_now || (wish.start == StartKind::At &&
                                                           wish.earliest <= now);
    if (at_once) {
      return Reason{ReasonCode::NoCapacityNow, "orders that waited are served first"};
    }
    if (wish.start == StartKind::Cheapest) {  // later, if it still can be
      wish.earliest = std::max(wish.earliest, next_border(now + milliseconds(1)));
    }
  }
  auto place = quote != nullptr ? place_at_quote(state, *quote, now)
               : starts_now ? cheapest_place(state, order.resources, now, order.duration, nullptr)
                            : book_place(state, order.resources, wish, order.duration, now);
  if (const auto* candidate = std::get_if<Candidate>(&place)) {
    if (auto reason = above_limit(state, *candidate, order.resources.gpus, now, order.duration,
                                  order.price_limit)) {
      return std::move(*reason);
    }
  }
  return place;
}

Decision queue_order(const State& state, Order order, const Quote* named, const Quote* quote,
                     Reason reason) {
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
  if (named != nullptr) {
    decision.events.push_back(QuoteClosed{named->id});
  }
  return decision;
}

Decision grant_order(const State& state, const Stamp& stamp, const Order& order,
                     const Candidate& candidate, const Quote* named, const Quote* quote) {
  if (std::ssize(state.leases) >= Limits::kLiveLeasesMax) {
    return refused(ReasonCode::LimitReached, "the market has as many leases as it can hold");
  }
  const PolicyVersion policy = quote != nullptr ? quote->policy : state.policy.version;
  Decision decision{{}, {}, OrderAnswer{order.id, LeaseId(order.id.value()), std::nullopt}};
  decision.events.push_back(grant(state, stamp, order, candidate, policy));
  if (named != nullptr) {
    decision.events.push_back(QuoteClosed{named->id});
  }
  return decision;
}

std::optional<Reason> check_fields(const PlaceOrder& command) {
  if (auto reason = check_duration(command.duration)) {
    return reason;
  }
  return check_price_limit(command.price_limit);
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const PlaceOrder& command) {
  auto checked = checked_resources(command.resources);
  if (auto* reason = std::get_if<Reason>(&checked)) {
    return refused(std::move(*reason));
  }
  if (auto reason = check_fields(command)) {
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
              SiteId(),
              command.without_job};
  const Quote* named = nullptr;  // closed if the order is accepted
  const Quote* quote = nullptr;  // its prices hold
  if (!command.quote.is_none()) {
    auto found = named_quote(state, command, order.resources);
    if (auto* reason = std::get_if<Reason>(&found)) {
      return refused(std::move(*reason));
    }
    named = std::get<const Quote*>(found);
    if (auto reason = check_quote(state, *named, command.price_limit, stamp.now)) {
      return refused(std::move(*reason));
    }
    quote = named->expires > stamp.now ? named : nullptr;
  }
  auto wish = checked_wish(state, named != nullptr ? named->wish : command.wish, command.duration,
                           stamp.now);
  if (auto* reason = std::get_if<Reason>(&wish)) {
    return refused(std::move(*reason));
  }
  const TimeWish& wanted = std::get<TimeWish>(wish);
  auto place = find_place(state, order, wanted, quote, stamp.now);
  if (const auto* candidate = std::get_if<Candidate>(&place)) {
    return grant_order(state, stamp, order, *candidate, named, quote);
  }
  auto home = home_pool(state, order.resources);
  if (auto* never = std::get_if<Reason>(&home)) {
    return refused(std::move(*never));
  }
  auto& reason = std::get<Reason>(place);
  const bool is_repriced = named != nullptr && quote == nullptr;
  if (command.refuse_if_unavailable || wanted.start != StartKind::Now ||
      (is_repriced && reason.code == ReasonCode::PriceAboveLimit)) {
    return refused(std::move(reason));
  }
  order.gpu_class = std::get<PoolKey>(home).gpu_class;
  order.site = std::get<PoolKey>(home).site;
  return queue_order(state, std::move(order), named, quote, std::move(reason));
}

}  // namespace bmgpu::core
