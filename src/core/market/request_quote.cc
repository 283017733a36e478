#include "core/handlers.h"
#include "core/market/orders.h"
#include "core/market/pricing.h"

namespace bmgpu::core {

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
  auto found = cheapest_place(state, resources, stamp.now, command.duration, nullptr);
  if (auto* reason = std::get_if<Reason>(&found)) {
    auto home = home_pool(state, resources);
    auto* never = std::get_if<Reason>(&home);
    return refused(never != nullptr ? std::move(*never) : std::move(*reason));
  }
  auto& candidate = std::get<Candidate>(found);
  if (auto reason = above_limit(state, candidate, resources.gpus, stamp.now, command.duration,
                                command.price_limit)) {
    return refused(std::move(*reason));
  }
  if (std::ssize(state.quotes) >= Limits::kLiveQuotesMax) {
    return refused(ReasonCode::LimitReached, "too many quotes are open; try again in a minute");
  }
  Quote quote;
  quote.id = QuoteId(state.next_id);
  quote.tenant = command.tenant;
  quote.resources = resources;
  quote.gpu_class = candidate.pool.gpu_class;
  quote.site = candidate.pool.site;
  quote.owner_floor = candidate.owner_floor;
  quote.duration = command.duration;
  quote.start = stamp.now;
  quote.expires = stamp.now + state.policy.quote_lifetime;
  quote.slot_prices = std::move(candidate.slot_prices);
  quote.total = candidate.total;
  quote.factors = price_factors(
      state.policy, state.slot_weights,
      next_gpu(state, candidate.pool, state.pools.at(candidate.pool), candidate.owner_floor), 0);
  quote.policy = state.policy.version;
  const QuoteId id = quote.id;
  Decision decision{{}, {}, QuoteAnswer{id}};
  decision.events.push_back(QuoteIssued{std::move(quote)});
  return decision;
}

}  // namespace bmgpu::core
