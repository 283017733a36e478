#include <algorithm>

#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::uint32_t kEventsDefault = 200;
constexpr std::uint32_t kEventsMax = 1000;

// What the caller may ask about: its own orders, quotes and nodes; operators everything.
Result<store::EventQuery> query_of(const Turn& turn, const Market& market,
                                   const api::Identity& caller,
                                   const v1::ListEventsRequest& request) {
  store::EventQuery query;
  const bool op = caller.role == api::Role::Operator;
  query.account = op ? AccountId() : caller.account;
  if (request.has_after_sequence()) {
    query.after = Sequence(request.after_sequence());
  }
  query.limit = std::min(request.limit() == 0 ? kEventsDefault : request.limit(), kEventsMax);
  if (request.id().empty()) {
    return query;
  }
  const std::optional<NodeEntry> named = market.parts.directory.node_by_name(request.id());
  if (named && (op || named->owner == caller.account)) {
    query.account = AccountId();
    query.subject = named->id;
    return query;
  }
  const Result<wire::AnyId> id = wire::parse_any_id(request.id());
  if (!id) {
    return id.error();
  }
  if (const auto* quote = std::get_if<QuoteId>(&*id)) {
    query.subject = *quote;
    return query;
  }
  if (const auto* node = std::get_if<NodeId>(&*id)) {
    const std::optional<NodeEntry> entry = market.parts.directory.node(*node);
    if (!entry || (!op && entry->owner != caller.account)) {
      return Error{ErrorCode::NotFound, "there is no node " + request.id() + " of yours"};
    }
    query.account = AccountId();
    query.subject = *node;
    return query;
  }
  const Result<OrderId> order = market.orders.resolve(turn.state(), caller, request.id());
  if (!order) {
    return order.error();
  }
  query.subject = *order;
  return query;
}

Result<v1::ListEventsResponse> list_events(Turn& turn, Market& market, const api::Identity& caller,
                                           const v1::ListEventsRequest& request) {
  const Result<store::EventQuery> query = query_of(turn, market, caller, request);
  if (!query) {
    return query.error();
  }
  const Result<std::vector<store::HistoryEvent>> events = market.parts.history.events(*query);
  if (!events) {
    return events.error();
  }
  v1::ListEventsResponse response;
  for (const store::HistoryEvent& event : *events) {
    v1::HistoryEvent& shown = *response.add_events();
    shown.set_sequence(event.sequence.value());
    shown.set_time_unix_ms(event.at.unix_ms());
    shown.set_kind(event.kind);
    shown.set_subject(event.subject);
    shown.set_text(event.text);
  }
  return response;
}

}  // namespace

void add_event_methods(Rpc& rpc, Market& market) {
  Method<v1::ListEventsRequest, v1::ListEventsResponse> list;
  list.name = "bmgpu.v1.Market/ListEvents";
  list.run = [&market](Turn& turn, const api::Identity& caller,
                       const v1::ListEventsRequest& request) {
    return list_events(turn, market, caller, request);
  };
  rpc.add(std::move(list));
}

}  // namespace bmgpu::controld
