#include <algorithm>

#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/requests.h"
#include "controld/rpc.h"
#include "controld/validate.h"
#include "controld/views.h"
#include "core/market/offer_query.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::int64_t kHealthUnknown = 100;

// The lowest health of the GPUs that the offer counts: of its class, listed and not failed.
std::int64_t health_of(const Turn& turn, const NodeSessions& sessions,
                       const core::OfferView& offer) {
  std::int64_t lowest = kHealthUnknown;
  const auto readings = sessions.readings(offer.node);
  for (const core::GpuRecord& gpu : turn.state().nodes.at(offer.node).gpus) {
    const bool counts =
        gpu.gpu_class == offer.gpu_class && gpu.named && gpu.state != core::GpuState::Failed;
    const auto reading = readings.find(gpu.uuid);
    if (counts && reading != readings.end()) {
      lowest = std::min<std::int64_t>(lowest, reading->second.health);
    }
  }
  return lowest;
}

v1::Offer offer_view(const core::OfferRow& row) {
  const core::OfferView& offer = row.offer;
  v1::Offer view;
  view.set_id(wire::to_text(wire::OfferId{offer.node, offer.gpu_class}));
  view.set_gpu(offer.spec.model);
  view.set_form(form_text(offer.spec.form));
  view.set_gpu_memory_mib(offer.spec.memory_mib);
  view.set_gpus_total(static_cast<std::uint32_t>(offer.gpus_total));
  view.set_gpus_free(static_cast<std::uint32_t>(offer.gpus_free));
  view.set_price_micros_per_gpu_hour(micros_per_gpu_hour(offer.price));
  view.set_node(row.node_name);
  view.set_site(row.site_name);
  view.set_health(static_cast<std::uint32_t>(row.health));
  view.set_simulated_driver(offer.driver == core::Driver::Simulated);
  view.set_cpu_millis(offer.capacity.cpu_millis);
  view.set_memory_mib(offer.capacity.memory_mib);
  view.set_scratch_mib(offer.capacity.scratch_mib);
  return view;
}

std::vector<core::OfferRow> rows_of(const Turn& turn, const Market& market) {
  std::vector<core::OfferRow> rows;
  for (const core::OfferView& offer : core::offers(turn.state(), turn.now())) {
    const std::optional<NodeEntry> node = market.parts.directory.node(offer.node);
    rows.push_back({offer, node ? node->name : wire::to_text(offer.node),
                    node ? node->site_name : wire::to_text(offer.site),
                    health_of(turn, market.sessions, offer)});
  }
  return rows;
}

Result<v1::ListOffersResponse> list_offers(Turn& turn, const Market& market,
                                           const v1::ListOffersRequest& request) {
  const Result<core::OfferQuery> query = core::parse_offer_query(request.query());
  if (!query) {
    return query.error();
  }
  const core::FilteredOffers found = core::filter_offers(*query, rows_of(turn, market));
  v1::ListOffersResponse response;
  for (std::size_t i = 0; i < query->terms.size(); ++i) {
    v1::FilterTerm& term = *response.add_terms();
    term.set_term(core::print(query->terms[i]));
    term.set_removed(static_cast<std::uint32_t>(found.removed[i]));
  }
  for (const core::OfferRow& row : found.rows) {
    *response.add_offers() = offer_view(row);
  }
  response.set_effective_filter(core::print(*query));
  response.set_as_of_unix_ms(turn.now().unix_ms());
  response.set_currency(core::policy(turn.state()).currency);
  return response;
}

Result<v1::Quote> create_quote(Turn& turn, const Market& market, const api::Identity& caller,
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
  return quote_view(turn.state(), *quote, market.parts.directory, turn.now());
}

}  // namespace

void add_offer_methods(Rpc& rpc, Market& market) {
  Method<v1::ListOffersRequest, v1::ListOffersResponse> list;
  list.name = "bmgpu.v1.Market/ListOffers";
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
  quote.run = [&market](Turn& turn, const api::Identity& caller,
                        const v1::CreateQuoteRequest& request) {
    return create_quote(turn, market, caller, request);
  };
  rpc.add(std::move(quote));
}

}  // namespace bmgpu::controld
