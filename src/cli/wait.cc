#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/feed.h"
#include "cli/format.h"
#include "cli/image_hint.h"
#include "cli/message_json.h"
#include "cli/terminal.h"
#include "cli/values.h"

namespace bmgpu::cli {
namespace {

enum class Goal { Running, Ended };

Answer answer_of(Context& context, const v1::Order& order, Goal goal) {
  Answer answer;
  answer.document.set("order", to_json(order));
  const std::string id = order.id();
  if (order.state() != v1::ORDER_STATE_ENDED) {
    answer.text = id + " is running on " + order.node() + "\n";
    return answer;
  }
  answer.text = id + " has ended: " + end_text(order) + "; charged " +
                money_text(order.charge_micros(), order.currency()) + "\n";
  if (goal == Goal::Running && order.billed_from_unix_ms() == 0) {
    answer.failure = Failure{ExitCode::JobFailed, "job_failed", id + " ended before it ran",
                             image_hint(context, order)};
  } else if (goal == Goal::Ended && !succeeded(order)) {
    answer.failure = Failure{ExitCode::JobFailed, "job_failed", id + " failed: " + end_text(order),
                             image_hint(context, order)};
  }
  return answer;
}

bool reached(const v1::Order& order, Goal goal) {
  return order.state() == v1::ORDER_STATE_ENDED ||
         (goal == Goal::Running &&
          (order.state() == v1::ORDER_STATE_RUNNING || order.state() == v1::ORDER_STATE_ENDING));
}

Answer timed_out(const std::optional<v1::Order>& order) {
  Answer answer;
  answer.failure = Failure{ExitCode::Refused, "wait_timeout", "the time to wait is over", ""};
  if (order) {
    answer.document.set("order", to_json(*order));
    answer.failure->message += "; it is " + state_cell(*order).text;
  }
  return answer;
}

Answer run_wait(Context& context, const Arguments& arguments) {
  const Goal goal = arguments.value("for") == "running" ? Goal::Running : Goal::Ended;
  const Result<std::optional<std::int64_t>> timeout = duration_ms_option(arguments, "timeout");
  if (!timeout) {
    return timeout.error();
  }
  std::optional<std::chrono::steady_clock::time_point> until;
  if (*timeout) {
    until = std::chrono::steady_clock::now() + std::chrono::milliseconds(**timeout);
  }
  if (Result<MarketConfig> config = context.config(); !config) {
    return config.error();
  }
  Environment& environment = context.environment();
  StatusLine status(environment.err,
                    environment.err_terminal ? StatusLine::Mode::Rewrite : StatusLine::Mode::Lines);
  std::optional<v1::Order> order;
  Feed feed(context);
  feed.watch_order(arguments.operand(0));
  while (const std::optional<FeedItem> item = feed.next(until)) {
    if (const auto* change = std::get_if<OrderChanged>(&*item)) {
      order.emplace().ParseFromString(change->bytes);
      status.show(order->id() + ": " + state_cell(*order).text);
      if (reached(*order, goal)) {
        status.clear();
        return answer_of(context, *order, goal);
      }
    } else if (const auto* lost = std::get_if<ConnectionLost>(&*item)) {
      status.show("connection lost (" + lost->why + "); trying again");
    } else if (const auto* failed = std::get_if<FeedFailed>(&*item)) {
      return failed->error;
    } else if (std::holds_alternative<Interrupted>(*item)) {
      return Answer(Failure{ExitCode::Refused, "interrupted", "interrupted; the job goes on", ""});
    }
  }
  return timed_out(order);
}

}  // namespace

CommandSpec wait_command() {
  return {.name = "wait",
          .summary = "Wait until a job runs or has ended",
          .description =
              "Exit code 0: reached, and for --for ended the job's own exit code was 0.\n"
              "6: the job failed, or ended before it ran. 1: the timeout passed first; nothing is\n"
              "stopped by it. A lost connection is made again meanwhile.",
          .operands = {{.name = "ID", .help = "Order or lease"}},
          .options = {{.name = "for",
                       .value = "STATE",
                       .help = "What to wait for; default ended",
                       .choices = {"running", "ended"}},
                      {.name = "timeout", .value = "TIME", .help = "Give up after, such as 10m"}},
          .examples = {{"bmcli wait order-7", "Until it has ended"},
                       {"bmcli wait order-7 --for running --timeout 10m", "Until it runs"}},
          .run = run_wait};
}

}  // namespace bmgpu::cli
