#include <limits>
#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"
#include "cli/text.h"
#include "cli/ticker.h"
#include "cli/values.h"

namespace bmgpu::cli {
namespace {

constexpr std::int64_t kLimitMax = 1000;
constexpr std::chrono::seconds kRefresh{1};

std::string event_text(const v1::HistoryEvent& event) {
  return time_text(event.time_unix_ms()) + "  " + printable(event.subject()) + "  " +
         printable(event.kind()) + "  " + printable(event.text()) + "\n";
}

std::string events_text(const Arguments& arguments, const v1::ListEventsResponse& response) {
  std::string text;
  for (const v1::HistoryEvent& event : response.events()) {
    text += arguments.has("jsonl") ? to_json(event).dump() + "\n" : event_text(event);
  }
  return text;
}

std::string nothing_happened(const Arguments& arguments) {
  const std::string id = arguments.operand(0);
  if (arguments.has("after")) {
    return "No event after that; leave --after out to see those before it";
  }
  return id.empty() ? "No event yet. Orders make them: bmcli run -g 1 --duration 1h --image IMAGE "
                      "--command \"…\""
                    : "No event of " + id + "; bmcli explain " + id + " shows its state";
}

Answer follow(Context& context, const Arguments& arguments, v1::ListEventsRequest request) {
  Environment& environment = context.environment();
  Ticker ticker(environment.interrupts);
  do {
    v1::ListEventsResponse response;
    if (Result<void> called = context.call("ListEvents", request, response); !called) {
      return called.error();
    }
    if (!response.events().empty()) {
      environment.out << events_text(arguments, response) << std::flush;
      request.set_after_sequence(response.events().rbegin()->sequence());
    }
  } while (environment.out && ticker.wait(kRefresh));
  return {};
}

Answer run_events(Context& context, const Arguments& arguments) {
  const Result<std::optional<std::int64_t>> limit = count_option(arguments, "limit", 1, kLimitMax);
  const Result<std::optional<std::int64_t>> after =
      count_option(arguments, "after", 0, std::numeric_limits<std::int64_t>::max());
  if (!limit || !after) {
    return (limit ? after : limit).error();
  }
  v1::ListEventsRequest request;
  request.set_id(arguments.operand(0));
  if (request.id().empty() && !arguments.operands().empty()) {
    return usage_failure("the id is empty; leave it out to see all events");
  }
  if (*after) {
    request.set_after_sequence(static_cast<std::uint64_t>(**after));
  }
  request.set_limit(static_cast<std::uint32_t>(limit->value_or(0)));
  const bool lines = arguments.has("follow") || arguments.has("jsonl");
  if (context.json() && lines) {
    return usage_failure("--json is one document; use --jsonl alone to follow");
  }
  if (arguments.has("follow")) {
    return follow(context, arguments, std::move(request));
  }
  v1::ListEventsResponse response;
  if (Result<void> called = context.call("ListEvents", request, response); !called) {
    return called.error();
  }
  if (response.events().empty() && !context.json() && !lines) {
    context.note(nothing_happened(arguments));
  }
  return {events_text(arguments, response), to_json(response)};
}

}  // namespace

CommandSpec events_command() {
  return {.name = "events",
          .summary = "Show what happened, and when",
          .operands = {{.name = "ID",
                        .help = "Of one order, lease or node; default: all that you may see",
                        .required = false}},
          .options = {{.name = "follow", .letter = 'f', .value = "", .help = "Stay, until Ctrl-C"},
                      {.name = "after", .value = "N", .help = "The first after this sequence"},
                      {.name = "limit",
                       .value = "N",
                       .help = "The newest N (1 to 1000; with --after the first N); default 200"},
                      {.name = "jsonl", .value = "", .help = "One JSON document for each event"}},
          .examples = {{"bmcli events order-7", "The life of one order"},
                       {"bmcli events -f --jsonl", "Everything, as it happens, for a program"}},
          .run = run_events};
}

}  // namespace bmgpu::cli
