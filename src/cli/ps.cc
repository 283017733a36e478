#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"
#include "cli/ticker.h"
#include "cli/values.h"

namespace bmgpu::cli {
namespace {

constexpr std::int64_t kLimitMax = 1000;
constexpr std::chrono::seconds kRefresh{2};

std::string orders_table(const v1::ListOrdersResponse& response, Colours colours) {
  Table table({{"ID"},
               {"NAME"},
               {"GPU"},
               {"N", Align::Right},
               {"NODE"},
               {"STATE"},
               {"END"},
               {"PRICE/GPU-H", Align::Right},
               {"CHARGE", Align::Right},
               {"AT MOST", Align::Right}});
  for (const v1::Order& order : response.orders()) {
    const bool leased = !order.lease().empty();
    const std::string& currency = order.currency();
    table.add({order.id(), order.name(), gpu_text(order.gpu()), std::to_string(order.gpus()),
               order.node(), state_cell(order), time_text(order.end_unix_ms()),
               leased ? money_text(order.price_micros_per_gpu_hour(), currency) : "",
               leased ? money_text(order.charge_micros(), currency) : "",
               leased ? money_text(order.quote_micros(), currency) : ""});
  }
  return table.empty() ? "" : table.text(colours);
}

void note_if_empty(Context& context, const v1::ListOrdersResponse& response, bool all) {
  if (response.orders().empty() && !context.json()) {
    context.note(all ? "You have rented nothing yet. To start: bmcli list, then bmcli run -g 1 "
                       "--duration 1h --image IMAGE --command \"…\""
                     : "Nothing is rented or waiting. bmcli ps --all shows what has ended; "
                       "bmcli run --help, how to start");
  }
}

Answer watch(Context& context, const v1::ListOrdersRequest& request) {
  Environment& environment = context.environment();
  Ticker ticker(environment.interrupts);
  do {
    v1::ListOrdersResponse response;
    if (Result<void> called = context.call("ListOrders", request, response); !called) {
      return called.error();
    }
    environment.out << (environment.out_terminal ? "\x1b[H\x1b[2J" : "")
                    << orders_table(response, context.out_colours()) << std::flush;
    note_if_empty(context, response, request.all());
  } while (environment.out && ticker.wait(kRefresh));
  return {};
}

Answer run_ps(Context& context, const Arguments& arguments) {
  const Result<std::optional<std::int64_t>> limit = count_option(arguments, "limit", 1, kLimitMax);
  if (!limit) {
    return limit.error();
  }
  v1::ListOrdersRequest request;
  request.set_all(arguments.has("all"));
  request.set_limit(static_cast<std::uint32_t>(limit->value_or(0)));
  if (arguments.has("watch")) {
    return context.json() ? Answer(usage_failure("--json is one document; leave --watch out"))
                          : watch(context, request);
  }
  v1::ListOrdersResponse response;
  if (Result<void> called = context.call("ListOrders", request, response); !called) {
    return called.error();
  }
  note_if_empty(context, response, request.all());
  return {orders_table(response, context.out_colours()), to_json(response)};
}

}  // namespace

CommandSpec ps_command() {
  return {
      .name = "ps",
      .summary = "Show your orders and leases, and what they have cost so far",
      .description = "Every running meter is in it: what is not listed costs nothing.",
      .options = {{.name = "all", .letter = 'a', .value = "", .help = "Ended ones too"},
                  {.name = "watch",
                   .letter = 'w',
                   .value = "",
                   .help = "Show it again every 2 s until Ctrl-C"},
                  {.name = "limit", .value = "N", .help = "At most N (1 to 1000); default 100"}},
      .examples = {{"bmcli ps", "What runs and waits now"},
                   {"bmcli ps -a --json | jq .orders[0].charge_micros",
                    "What the newest order cost, in micro-units"}},
      .run = run_ps};
}

}  // namespace bmgpu::cli
