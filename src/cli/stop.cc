#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"

namespace bmgpu::cli {
namespace {

std::string said(const v1::Order& order) {
  const std::string id = order.id();
  const std::string cost = order.lease().empty()
                               ? "nothing was charged"
                               : "charged " + money_text(order.charge_micros(), order.currency());
  if (order.state() == v1::ORDER_STATE_ENDED) {
    return id + " has ended: " + end_text(order) + "; " + cost + "; it costs nothing more\n";
  }
  return id + " is ending; " + cost + " so far. bmcli wait " + id + " waits for its end\n";
}

Answer run_stop(Context& context, const Arguments& arguments) {
  Json orders = Json::array();
  std::string text;
  for (const std::string& id : arguments.operands()) {
    v1::StopOrderRequest request;
    request.set_id(id);
    v1::Order order;
    if (Result<void> called = context.mutate("StopOrder", request, order); !called) {
      Answer answer(std::move(text), Json::object().set("orders", std::move(orders)));
      answer.failure = failure_of(called.error());
      return answer;
    }
    text += said(order);
    orders.push(to_json(order));
  }
  return {std::move(text), Json::object().set("orders", std::move(orders))};
}

}  // namespace

CommandSpec stop_command() {
  return {
      .name = "stop",
      .summary = "End leases and cancel waiting orders",
      .description =
          "The job gets SIGTERM, then SIGKILL. What has ended already stays as it is, which is\n"
          "no error. After the end nothing is billed.",
      .operands = {{.name = "ID", .help = "Order or lease", .repeats = true}},
      .examples = {{"bmcli stop order-7", "End one"},
                   {"bmcli ps --json | jq -r .orders[].id | xargs bmcli stop", "End all"}},
      .run = run_stop};
}

}  // namespace bmgpu::cli
