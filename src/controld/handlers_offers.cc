#include <algorithm>

#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/query.h"
#include "controld/requests.h"
#include "controld/rpc.h"
#include "controld/validate.h"
#include "controld/views.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::uint32_t kHealthUnknown = 100;

// The lowest health of the node's GPUs that readings name.
std::uint32_t health_of(const NodeSessions& sessions, NodeId node) {
  std::uint32_t lowest = kHealthUnknown;
  for (const auto& [uuid, reading] : sessions.readings(node)) {
    lowest = std::min(lowest, reading.health);
  }
  return lowest;
}

v1::Offer offer_view(const core::OfferView& offer, const Market& market) {
  v1::Offer view;
  const std::optional<NodeEntry> node = market.parts.directory.node(offer.node);
  view.set_id(wire::to_text(wire::OfferId{offer.node, offer.gpu_class}));
  view.set_gpu(offer.spec.model);
  view.set_form(form_text(offer.spec.form));
  view.set_gpu_memory_mib(offer.spec.memory_mib);
  view.set_gpus_total(static_cast<std::uint32_t>(offer.gpus_total));
  view.set_gpus_free(static_cast<std::uint32_t>(offer.gpus_free));
  view.set_price_micros_per_gpu_hour(micros_per_gpu_hour(offer.price));
  view.set_node(node ? node->name : wire::to_text(offer.node));
  view.set_site(node ? node->site_name : wire::to_text(offer.site));
  view.set_health(health_of(market.sessions, offer.node));
  view.set_simulated_driver(offer.driver == core::Driver::Simulated);
  view.set_cpu_millis(offer.capacity.cpu_millis);
  view.set_memory_mib(offer.capacity.memory_mib);
  view.set_scratch_mib(offer.capacity.scratch_mib);
  return view;
}

Result<v1::ListOffersResponse> list_offers(Turn& turn, const Market& market,
                                           const v1::ListOffersRequest& request) {
  const Result<Query> query = Query::parse(request.query());
  if (!query) {
    return query.error();
  }
  std::vector<v1::Offer> offers;
  for (const core::OfferView& offer : core::offers(turn.state(), turn.now())) {
    offers.push_back(offer_view(offer, market));
  }
  v1::ListOffersResponse response;
  for (const Query::Counted& counted : query->filter(offers)) {
    v1::FilterTerm& term = *response.add_terms();
    term.set_term(counted.term);
    term.set_removed(counted.removed);
  }
  for (v1::Offer& offer : offers) {
    *response.add_offers() = std::move(offer);
  }
  response.set_effective_filter(query->normal_form());
  response.set_as_of_unix_ms(turn.now().unix_ms());
  response.set_currency(core::policy(turn.state()).currency);
  return response;
}

Result<v1::Quote> create_quote(Turn& turn, const api::Identity& caller,
                               const v1::CreateQuoteRequest& request) {
  const Result<Duration> duration = duration_of("the duration", request.duration_ms());
  const Result<Price> limit = price_limit(request.max_price_micros_per_gpu_hour());
  if (!duration || !limit) {
    return duration ? limit.error() : duration.error();
  }
  const core::Answer answer = turn.execute(
      core::RequestQuote{caller.account, resources_of(request.resources()), *duration, *limit});
  if (const auto* refused = std::get_if<core::Refused>(&answer)) {
    return refusal(refused->reason);
  }
  const core::Quote* quote =
      core::find_quote(turn.state(), std::get<core::QuoteAnswer>(answer).quote);
  check(quote != nullptr, "handlers: a quote that was just issued is not there");
  return quote_view(turn.state(), *quote);
}

}  // namespace

void add_offer_methods(Rpc& rpc, Market& market) {
  Method<v1::ListOffersRequest, v1::ListOffersResponse> list;
  list.name = "bmgpu.v1.Market/ListOffers";
  list.prepare = [](const api::Identity&, v1::ListOffersRequest& request) -> Result<void> {
    const Result<Query> query = Query::parse(request.query());
    return query ? Result<void>() : Result<void>(query.error());
  };
  list.run = [&market](Turn& turn, const api::Identity&, const v1::ListOffersRequest& request) {
    return list_offers(turn, market, request);
  };
  rpc.add(std::move(list));

  Method<v1::CreateQuoteRequest, v1::Quote> quote;
  quote.name = "bmgpu.v1.Market/CreateQuote";
  quote.effect = Effect::Mutation;
  quote.prepare = [](const api::Identity&, v1::CreateQuoteRequest& request) {
    return check_resources(request.resources());
  };
  quote.run = [](Turn& turn, const api::Identity& caller, const v1::CreateQuoteRequest& request) {
    return create_quote(turn, caller, request);
  };
  rpc.add(std::move(quote));
}

}  // namespace bmgpu::controld
