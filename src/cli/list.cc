#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"

namespace bmgpu::cli {
namespace {

// The options are terms of the query language under other names, so that the server alone decides
// what they mean.
std::string query_of(const Arguments& arguments) {
  std::string query;
  const auto add = [&query](const std::string& term) {
    query += (query.empty() ? "" : " ") + term;
  };
  for (const std::string& operand : arguments.operands()) {
    add(operand);
  }
  if (const auto gpu = arguments.value("gpu")) {
    std::string quoted = "\"";
    for (const char c : *gpu) {
      quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    add("gpu=" + (gpu->find_first_of(" \t\"\\") == std::string::npos ? *gpu : quoted + "\""));
  }
  if (const auto memory = arguments.value("min-mem")) {
    add("mem>=" + *memory);
  }
  if (const auto gpus = arguments.value("gpus")) {
    add("gpus>=" + *gpus);
  }
  if (const auto price = arguments.value("max-price")) {
    add("price<=" + *price);
  }
  return query;
}

std::string offers_table(const v1::ListOffersResponse& response, Colours colours) {
  Table table({{"OFFER"},
               {"GPU"},
               {"FORM"},
               {"FREE", Align::Right},
               {"MEM", Align::Right},
               {"PRICE/GPU-H", Align::Right},
               {"HEALTH", Align::Right},
               {"CPUS", Align::Right},
               {"RAM", Align::Right},
               {"SCRATCH", Align::Right},
               {"NODE"},
               {"SITE"}});
  for (const v1::Offer& offer : response.offers()) {
    const bool healthy = offer.health() >= 80;
    table.add({offer.id(),
               gpu_text(offer.gpu()) + (offer.simulated_driver() ? " (sim)" : ""),
               offer.form(),
               {std::to_string(offer.gpus_free()) + "/" + std::to_string(offer.gpus_total()),
                offer.gpus_free() > 0 ? Style::Green : Style::Dim},
               mib_text(offer.gpu_memory_mib()),
               money_text(offer.price_micros_per_gpu_hour(), response.currency()),
               {std::to_string(offer.health()), healthy ? Style::Plain : Style::Yellow},
               std::to_string(offer.cpu_millis() / 1000),
               mib_text(offer.memory_mib()),
               mib_text(offer.scratch_mib()),
               offer.node(),
               offer.site()});
  }
  return table.empty() ? "" : table.text(colours);
}

// What the filter was and what each part of it took away: nothing is hidden silently.
std::string filter_lines(const v1::ListOffersResponse& response) {
  std::string lines;
  if (response.terms().empty()) {
    lines = "Filter: none";
  } else {
    lines = "Filter:";
    for (const v1::FilterTerm& term : response.terms()) {
      lines += " " + term.term() + " (removed " + std::to_string(term.removed()) + ")";
    }
  }
  return lines + "\nAs of " + time_text(response.as_of_unix_ms()) +
         "; prices: one GPU, its first quarter hour, as a rate per hour";
}

Answer run_list(Context& context, const Arguments& arguments) {
  v1::ListOffersRequest request;
  request.set_query(query_of(arguments));
  v1::ListOffersResponse response;
  if (Result<void> called = context.call("ListOffers", request, response); !called) {
    return failure_of(called.error());
  }
  if (!context.json()) {
    context.environment().out << offers_table(response, context.out_colours()) << std::flush;
    if (response.offers().empty()) {
      context.note(response.terms().empty()
                       ? "Nothing is offered: bmcli nodes list shows which nodes there are, and "
                         "what keeps each off the market"
                       : "No offer matches: leave a term out; bmcli list shows everything");
    }
    context.note(filter_lines(response));
  }
  return {"", to_json(response)};
}

}  // namespace

CommandSpec list_command() {
  return {
      .name = "list",
      .summary = "Show what can be rented, cheapest first",
      .description =
          "Options and QUERY are joined: every term must hold. docs/reference/query.md has the\n"
          "language. The filter as understood, and how many offers each term removed, follow\n"
          "on standard error.",
      .operands = {{.name = "QUERY",
                    .help = "Terms such as gpu=A100 gpus>=2 price<1.2",
                    .required = false,
                    .repeats = true}},
      .options =
          {{.name = "gpu", .value = "MODEL", .help = "Words of the model's name"},
           {.name = "min-mem", .value = "SIZE", .help = "Memory per GPU, at least"},
           {.name = "gpus", .letter = 'g', .value = "N", .help = "Free GPUs on one node, at least"},
           {.name = "max-price", .value = "PRICE", .help = "Per GPU-hour, at most"}},
      .examples = {{"bmcli list --gpu=A100 --min-mem=40G", "A100s with at least 40 GiB"},
                   {"bmcli list 'gpu=A100 gpus>=2 price<1.2'", "The same market as a query"},
                   {"bmcli list --json | jq .offers[0]", "The cheapest offer, for a script"}},
      .run = run_list};
}

}  // namespace bmgpu::cli
