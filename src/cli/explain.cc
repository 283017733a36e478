#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/explanation.h"
#include "cli/message_json.h"

namespace bmgpu::cli {
namespace {

Answer run_explain(Context& context, const Arguments& arguments) {
  v1::ExplainRequest request;
  request.set_id(arguments.operand(0));
  v1::ExplainResponse response;
  if (Result<void> called = context.call("Explain", request, response); !called) {
    return called.error();
  }
  return {explanation_text(response, context.out_colours()), to_json(response)};
}

}  // namespace

CommandSpec explain_command() {
  return {.name = "explain",
          .summary = "Say why: a price, a wait, an end, a node that is not offered",
          .operands = {{.name = "ID", .help = "Order, lease, quote or node"}},
          .examples = {{"bmcli explain order-7", "Why it waits, or how its price came about"},
                       {"bmcli explain quote-12", "Each factor of a price"}},
          .run = run_explain};
}

}  // namespace bmgpu::cli
