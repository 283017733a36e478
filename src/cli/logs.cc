#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/feed.h"
#include "cli/log_print.h"
#include "cli/values.h"

namespace bmgpu::cli {
namespace {

constexpr std::int64_t kTailMax = 10'000;
constexpr std::size_t kDocumentBytesMax = std::size_t{256} << 20;

struct LogOptions {
  std::string id;
  std::uint32_t tail = 0;
  std::int64_t since_unix_ms = 0;
  LogPrinter::Form form = LogPrinter::Form::Text;
};

Result<LogOptions> read_options(Context& context, const Arguments& arguments) {
  LogOptions options;
  options.id = arguments.operand(0);
  if (arguments.has("jsonl")) {
    options.form = LogPrinter::Form::JsonLines;
  } else if (arguments.has("timestamps")) {
    options.form = LogPrinter::Form::TextWithTimes;
  }
  const Result<std::optional<std::int64_t>> tail = count_option(arguments, "tail", 1, kTailMax);
  if (!tail) {
    return tail.error();
  }
  options.tail = static_cast<std::uint32_t>(tail->value_or(0));
  const Result<std::optional<std::int64_t>> since = duration_ms_option(arguments, "since");
  if (!since) {
    return since.error();
  }
  if (*since) {
    options.since_unix_ms = context.environment().now().unix_ms() - **since;
  }
  return options;
}

// The log as it is now: `take` gets what comes, in order.
Result<void> read_log(Context& context, const LogOptions& options, const auto& take) {
  Result<wire::Client*> client = context.client();
  if (!client) {
    return client.error();
  }
  LogCursor cursor(options.id, LogCursor::Follow::No, options.tail);
  v1::StreamLogsRequest request;
  cursor.fill(request);
  Result<void> taken;
  Result<void> outcome =
      (*client)->stream(method_path("StreamLogs"), request, [&](std::string_view bytes) {
        Result<LogEntries> entries = cursor.take(bytes);
        taken = entries ? take(*entries) : entries.error();
        return taken.ok() && !(entries && entries->complete);
      });
  return taken ? outcome : taken;
}

Answer logs_document(Context& context, const LogOptions& options) {
  Json lines = Json::array();
  std::size_t bytes = 0;
  std::uint64_t missing = 0;
  bool complete = false;
  Result<void> read = read_log(context, options, [&](const LogEntries& entries) -> Result<void> {
    missing += entries.missing;
    complete = entries.complete;
    for (const LogEntry& entry : entries.entries) {
      bytes += entry.text.size();
      if (entry.time_unix_ms >= options.since_unix_ms) {
        lines.push(to_json(entry));
      }
    }
    if (bytes > kDocumentBytesMax) {
      return Error{ErrorCode::ResourceExhausted,
                   "the log is too large for one document: use --jsonl or --tail"};
    }
    return {};
  });
  if (!read) {
    return read.error();
  }
  Json document = Json::object();
  document.set("id", options.id).set("lines", std::move(lines));
  document.set("missing", missing).set("complete", complete);
  return {"", std::move(document)};
}

Answer follow(Context& context, const LogOptions& options) {
  if (Result<MarketConfig> config = context.config(); !config) {
    return config.error();
  }
  Environment& environment = context.environment();
  LogPrinter printer(environment.out, environment.err, options.form, options.since_unix_ms);
  Feed feed(context);
  feed.follow_log(options.id, options.tail);
  while (true) {
    const std::optional<FeedItem> item = feed.next();
    if (const auto* entries = std::get_if<LogEntries>(&*item)) {
      printer.print(*entries);
      if (entries->complete || !environment.out) {
        return {};
      }
    } else if (const auto* lost = std::get_if<ConnectionLost>(&*item)) {
      context.note("bmcli: connection lost (" + lost->why + "); trying again");
    } else if (std::holds_alternative<ConnectionBack>(*item)) {
      context.note("bmcli: connected again");
    } else if (const auto* failed = std::get_if<FeedFailed>(&*item)) {
      return failed->error;
    } else if (std::holds_alternative<Interrupted>(*item)) {
      return {};
    }
  }
}

Answer run_logs(Context& context, const Arguments& arguments) {
  const Result<LogOptions> options = read_options(context, arguments);
  if (!options) {
    return options.error();
  }
  if (context.json()) {
    if (arguments.has("follow") || arguments.has("jsonl")) {
      return usage_failure("--json is one document; use --jsonl alone to follow");
    }
    return logs_document(context, *options);
  }
  if (arguments.has("follow")) {
    return follow(context, *options);
  }
  Environment& environment = context.environment();
  LogPrinter printer(environment.out, environment.err, options->form, options->since_unix_ms);
  Result<void> read = read_log(context, *options, [&](const LogEntries& entries) -> Result<void> {
    printer.print(entries);
    return {};
  });
  return read ? Answer() : Answer(read.error());
}

}  // namespace

CommandSpec logs_command() {
  return {
      .name = "logs",
      .summary = "Show what a job wrote, also after it ended",
      .description =
          "Standard output and standard error of the job go to standard output, in the order\n"
          "in which they were written. With -f a lost connection is made again and the log goes\n"
          "on with the next line: none is lost, none comes twice.",
      .operands = {{.name = "ID", .help = "Order or lease"}},
      .options =
          {{.name = "follow", .letter = 'f', .value = "", .help = "Stay until the log is complete"},
           {.name = "tail", .value = "N", .help = "Only the last N lines (1 to 10000)"},
           {.name = "since", .value = "TIME", .help = "Not older than this, such as 10m"},
           {.name = "timestamps",
            .letter = 't',
            .value = "",
            .help = "Begin each line with its time"},
           {.name = "jsonl", .value = "", .help = "One JSON document for each line"}},
      .examples = {{"bmcli logs -f order-7", "Everything so far, and what comes"},
                   {"bmcli logs --tail 100 --timestamps order-7", "The last hundred lines"},
                   {"bmcli logs --json order-7 | jq -r .lines[].text", "For a script"}},
      .run = run_logs};
}

}  // namespace bmgpu::cli
