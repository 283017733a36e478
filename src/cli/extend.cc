#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"
#include "cli/values.h"

namespace bmgpu::cli {
namespace {

Answer run_extend(Context& context, const Arguments& arguments) {
  const Result<std::optional<std::int64_t>> by = duration_ms_option(arguments, "by");
  if (!by) {
    return by.error();
  }
  if (!*by) {
    return usage_failure("--by is missing: how much longer, such as --by 1h");
  }
  const Result<std::optional<std::int64_t>> price = money_option(arguments, "max-price");
  if (!price) {
    return price.error();
  }
  v1::ExtendLeaseRequest request;
  request.set_id(arguments.operand(0));
  request.set_by_ms(**by);
  request.set_max_price_micros_per_gpu_hour(price->value_or(0));
  v1::Order order;
  if (Result<void> called = context.mutate("ExtendLease", request, order); !called) {
    return called.error();
  }
  std::string text = order.id() + " now ends at " + time_text(order.end_unix_ms()) +
                     "; it costs at most " + money_text(order.quote_micros(), order.currency()) +
                     " in all\n";
  return {std::move(text), Json::object().set("order", to_json(order))};
}

}  // namespace

CommandSpec extend_command() {
  return {.name = "extend",
          .summary = "Move the end of a lease",
          .description =
              "The new slots are priced now and locked; the old ones keep their prices. It is\n"
              "refused if somebody else has the GPUs by then.",
          .operands = {{.name = "ID", .help = "Order or lease"}},
          .options = {{.name = "by", .value = "TIME", .help = "How much longer, such as 1h"},
                      {.name = "max-price",
                       .value = "PRICE",
                       .help = "Per GPU-hour, of the added time; dearer is refused"}},
          .examples = {{"bmcli extend order-7 --by 1h", "One hour more"},
                       {"bmcli extend order-7 --by 1h --max-price 1.50", "Only if it is cheap"}},
          .run = run_extend};
}

}  // namespace bmgpu::cli
