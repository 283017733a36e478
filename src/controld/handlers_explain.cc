#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "core/views.h"
#include "wire/ids.h"
#include "wire/units.h"

namespace bmgpu::controld {
namespace {

std::string per_hour(Price price, const std::string& currency) {
  return wire::print_money(Money(micros_per_gpu_hour(price))) + " " + currency + " per GPU-hour";
}

std::string money(std::int64_t micros, const std::string& currency) {
  return wire::print_money(Money(micros)) + " " + currency;
}

// END_REASON_JOB_EXITED → "job exited".
std::string reason_words(v1::EndReason reason) {
  std::string words = v1::EndReason_Name(reason).substr(std::string("END_REASON_").size());
  for (char& c : words) {
    c = c == '_' ? ' ' : static_cast<char>(c - 'A' + 'a');
  }
  return words;
}

void explain_order(v1::ExplainResponse& response, const v1::Order& order) {
  const std::string& currency = order.currency();
  response.set_subject(order.id());
  const auto line = [&response](std::string text) { response.add_lines(std::move(text)); };
  line(std::to_string(order.gpus()) + " GPU" + (order.gpus() == 1 ? "" : "s") +
       (order.gpu().empty() ? " of any class" : " of " + order.gpu()));
  switch (order.state()) {
    case v1::ORDER_STATE_WAITING:
      line("waits: " + (order.waiting_reason().empty() ? "it is next to be looked at"
                                                       : order.waiting_reason()));
      return;
    case v1::ORDER_STATE_PREPARING:
      line(order.lease() + " on " + order.node() + ": the node makes the job ready; not billed");
      if (!order.progress().empty()) {
        line("now: " + order.progress());
      }
      break;
    case v1::ORDER_STATE_RUNNING:
      line(order.lease() + " on " + order.node() + ": runs");
      break;
    case v1::ORDER_STATE_BOOKED:
      line(order.lease() + " on " + order.node() + ": booked, not billed before its start");
      break;
    case v1::ORDER_STATE_CANCELLED:
      line(order.lease() + ": given back before its start; its fee is settled then");
      break;
    case v1::ORDER_STATE_HELD:
      line(order.lease() + " on " + order.node() + ": held without a job, and billed");
      break;
    case v1::ORDER_STATE_ENDING:
      line(order.lease() + " on " + order.node() + ": ends; metering has stopped");
      break;
    default:
      line(order.lease().empty() ? "over without ever having had a lease"
                                 : order.lease() + " on " + order.node() + ": over");
      break;
  }
  if (order.end_reason() != v1::END_REASON_UNSPECIFIED) {
    line("ended: " + reason_words(order.end_reason()) +
         (order.has_exit_code() ? ", exit code " + std::to_string(order.exit_code()) : ""));
  }
  if (!order.end_detail().empty()) {
    line("why: " + order.end_detail());
  }
  if (!order.lease().empty()) {
    line("charged " + money(order.charge_micros(), currency) + " of at most " +
         money(order.quote_micros(), currency) + "; every price was locked when it was booked");
  }
}

// `asked` is the caller's own word for it, which a refusal repeats and no more.
Result<v1::ExplainResponse> explain_node(const Turn& turn, const Market& market,
                                         const api::Identity& caller, const NodeEntry& node,
                                         const std::string& asked) {
  if (caller.role != api::Role::Operator && caller.account != node.owner) {
    return Error{ErrorCode::NotFound, "there is no node " + asked + " of yours"};
  }
  v1::ExplainResponse response;
  response.set_subject(node.name);
  bool all_open = true;
  for (const GateView& gate : market.sessions.gates(node.id, turn.boot())) {
    v1::Gate& shown = *response.add_gates();
    shown.set_name(gate.name);
    shown.set_open(gate.open);
    shown.set_detail(gate.detail);
    all_open = all_open && gate.open;
    if (!gate.open) {
      response.add_lines("gate " + gate.name + " is closed: " + gate.detail);
    }
  }
  const auto record = turn.state().nodes.find(node.id);
  if (record == turn.state().nodes.end()) {
    response.add_lines("it has never sent an inventory that was accepted");
    return response;
  }
  if (record->second.lost) {
    response.add_lines(
        "it is lost: its leases have ended; it is taken back when it is heard again");
  } else if (record->second.listing == core::NodeListing::Draining) {
    response.add_lines("it is draining: no new lease starts on it; bmcli nodes resume offers it");
  } else if (all_open) {
    response.add_lines("it is offered");
  }
  for (const core::GpuRecord& gpu : record->second.gpus) {
    if (gpu.state == core::GpuState::Failed || gpu.state == core::GpuState::Sanitizing) {
      response.add_lines(gpu.uuid + (gpu.state == core::GpuState::Failed
                                         ? ": failed, not offered"
                                         : ": being cleaned, offered again when it is clean"));
    }
  }
  return response;
}

Result<v1::ExplainResponse> explain_quote(const Turn& turn, const api::Identity& caller,
                                          QuoteId id) {
  const core::Quote* quote = core::find_quote(turn.state(), id);
  const bool op = caller.role == api::Role::Operator;
  if (quote == nullptr || (!op && quote->tenant != caller.account)) {
    return Error{ErrorCode::NotFound, "there is no live quote " + wire::to_text(id) +
                                          " of yours; quotes end after a minute"};
  }
  const std::string& currency = core::policy(turn.state()).currency;
  v1::ExplainResponse response;
  response.set_subject(wire::to_text(id));
  response.add_lines("at most " + money(quote->total.count(), currency) + " for " +
                     wire::print_duration(quote->duration));
  for (const core::PriceFactor& factor : quote->factors) {
    response.add_lines(factor.name + " " + factor.value + ": " + per_hour(factor.after, currency));
  }
  return response;
}

Result<v1::ExplainResponse> explain(Turn& turn, Market& market, const api::Identity& caller,
                                    const v1::ExplainRequest& request) {
  const std::optional<NodeEntry> named = market.parts.directory.node_by_name(request.id());
  if (named) {
    return explain_node(turn, market, caller, *named, request.id());
  }
  const Result<wire::AnyId> id = wire::parse_any_id(request.id());
  if (!id) {
    return id.error();
  }
  if (const auto* node = std::get_if<NodeId>(&*id)) {
    const std::optional<NodeEntry> entry = market.parts.directory.node(*node);
    return entry && !entry->removed ? explain_node(turn, market, caller, *entry, request.id())
                 : Error{ErrorCode::NotFound, "there is no node " + request.id()};
  }
  if (const auto* quote = std::get_if<QuoteId>(&*id)) {
    return explain_quote(turn, caller, *quote);
  }
  const Result<OrderId> order = market.orders.resolve(turn.state(), caller, request.id());
  if (!order) {
    return order.error();
  }
  const Result<v1::Order> view = market.orders.view(turn.state(), *order, turn.now());
  if (!view) {
    return view.error();
  }
  v1::ExplainResponse response;
  explain_order(response, *view);
  return response;
}

}  // namespace

void add_explain_methods(Rpc& rpc, Market& market) {
  Method<v1::ExplainRequest, v1::ExplainResponse> method;
  method.name = "bmgpu.v1.Market/Explain";
  method.run = [&market](Turn& turn, const api::Identity& caller,
                         const v1::ExplainRequest& request) {
    return explain(turn, market, caller, request);
  };
  rpc.add(std::move(method));
}

}  // namespace bmgpu::controld
