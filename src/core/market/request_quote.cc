#include "core/book/window.h"
#include "core/book/wish.h"
#include "core/handlers.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kRunnersUp = 2;

// What a quote is made of.
struct Found {
  Candidate candidate;
  std::vector<StartOption> others;
  std::optional<StartOption> now;
};

std::variant<Found, Reason> find(const State& state, const RequestQuote& command,
                                 const Resources& resources, const TimeWish& wish, Instant now) {
  auto place = cheapest_place(state, resources, now, command.duration, nullptr);
  auto* here = std::get_if<Candidate>(&place);
  if (wish.start == StartKind::Now) {
    return here != nullptr ? std::variant<Found, Reason>(Found{std::move(*here), {}, {}})
                           : std::get<Reason>(std::move(place));
  }
  auto matched = matching_classes(state, resources);
  if (auto* reason = std::get_if<Reason>(&matched)) {
    return std::move(*reason);
  }
  WindowSearch found =
      search_window(state, std::get<std::vector<ClassId>>(matched), resources, wish,
                    command.duration, now, wish.start == StartKind::Cheapest ? kRunnersUp : 0);
  std::optional<StartOption> at_once;
  if (here != nullptr) {
    at_once = StartOption{now, here->total};
  }
  if (found.best) {
    return Found{std::move(*found.best), std::move(found.others), at_once};
  }
  auto refusal = book_place(state, resources, wish, command.duration, now);
  return std::get<Reason>(std::move(refusal));
}

// Until when the quoted lease can begin and still be what was asked for: what has begun cannot be
// booked any more, what begins now must be finished in its window.
Instant latest_start(const TimeWish& wish, Duration duration, Instant start, Instant now) {
  if (start > now) {
    return start - milliseconds(1);
  }
  if (wish.start == StartKind::At) {
    return now + hours(1);
  }
  Instant end = wish.deadline;
  for (const Interval& allowed : wish.allowed) {
    if (allowed.from <= start && start < allowed.until) {
      end = std::min(end, allowed.until);
    }
  }
  return end - duration;
}

Quote quote_of(const State& state, const RequestQuote& command, const Resources& resources,
               TimeWish wish, Candidate candidate, Instant now) {
  Quote quote;
  quote.id = QuoteId(state.next_id);
  quote.tenant = command.tenant;
  quote.resources = resources;
  quote.gpu_class = candidate.pool.gpu_class;
  quote.site = candidate.pool.site;
  quote.owner_floor = candidate.owner_floor;
  quote.duration = command.duration;
  quote.start = candidate.start;
  quote.expires = now + state.policy.quote_lifetime;
  if (wish.start != StartKind::Now) {
    quote.expires =
        std::min(quote.expires,
                 latest_start(wish, command.duration, candidate.start, now) + milliseconds(1));
  }
  quote.slot_prices = std::move(candidate.slot_prices);
  quote.total = candidate.total;
  quote.factors = price_factors(state.policy, state.slot_weights,
                                next_gpu(state, candidate.pool, state.pools.at(candidate.pool), now,
                                         candidate.start, candidate.owner_floor),
                                0);
  quote.policy = state.policy.version;
  quote.wish = std::move(wish);
  quote.issued = now;
  return quote;
}

}  // namespace

Decision handle(const State& state, const Stamp& stamp, const RequestQuote& command) {
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
  const auto& resources = std::get<Resources>(checked);
  auto wish = checked_wish(state, command.wish, command.duration, stamp.now);
  if (auto* reason = std::get_if<Reason>(&wish)) {
    return refused(std::move(*reason));
  }
  auto found = find(state, command, resources, std::get<TimeWish>(wish), stamp.now);
  if (auto* reason = std::get_if<Reason>(&found)) {
    auto home = home_pool(state, resources);
    auto* never = std::get_if<Reason>(&home);
    return refused(never != nullptr ? std::move(*never) : std::move(*reason));
  }
  auto& place = std::get<Found>(found);
  if (auto reason = above_limit(state, place.candidate, resources.gpus, stamp.now, command.duration,
                                command.price_limit)) {
    return refused(std::move(*reason));
  }
  if (std::ssize(state.quotes) >= Limits::kLiveQuotesMax) {
    return refused(ReasonCode::LimitReached, "too many quotes are open; try again in a minute");
  }
  Quote quote = quote_of(state, command, resources, std::get<TimeWish>(std::move(wish)),
                         std::move(place.candidate), stamp.now);
  Decision decision{{}, {}, QuoteAnswer{quote.id, place.now, std::move(place.others)}};
  decision.events.push_back(QuoteIssued{std::move(quote)});
  return decision;
}

}  // namespace bmgpu::core
