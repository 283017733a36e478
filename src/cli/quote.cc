#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/job_plan.h"
#include "cli/message_json.h"
#include "cli/quote_text.h"

namespace bmgpu::cli {
namespace {

Answer run_quote(Context& context, const Arguments& arguments) {
  const Result<ResourcePlan> plan = resource_plan(arguments);
  if (!plan) {
    return plan.error();
  }
  v1::CreateQuoteRequest request;
  fill(*plan, request);
  v1::Quote quote;
  if (Result<void> called = context.mutate("CreateQuote", request, quote); !called) {
    return called.error();
  }
  std::string text = quote_text(quote, plan->max_price_micros);
  text += arguments.has("explain") ? factors_text(quote, context.out_colours()) : "";
  text += "Take it: bmcli run --quote " + quote.id() + " …, with the same resources and duration\n";
  return {std::move(text), to_json(quote)};
}

}  // namespace

CommandSpec quote_command() {
  CommandSpec command{
      .name = "quote",
      .summary = "Ask for a price that the market then keeps for a minute",
      .options = resource_options(),
      .examples = {{"bmcli quote -g 2 --gpu A100 --duration 2h", "Two A100s for two hours"},
                   {"bmcli quote -g 1 --duration 8h --explain", "With each factor of the price"}},
      .run = run_quote};
  command.options.push_back(
      {.name = "explain", .value = "", .help = "Show how the price came about"});
  return command;
}

}  // namespace bmgpu::cli
