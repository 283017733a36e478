#include "sim/replay/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>

#include "base/prng.h"
#include "core/types.h"
#include "sim/json_text.h"

namespace bmgpu::sim {
namespace {

constexpr int kUsage = 2;
constexpr std::int64_t kFactorMax = 100;

Error invalid(std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; }

Result<JobTraceFormat> format_of(const std::string& name) {
  static const std::map<std::string, JobTraceFormat> kFormats{{"philly", JobTraceFormat::Philly},
                                                              {"gavel", JobTraceFormat::Gavel},
                                                              {"swf", JobTraceFormat::Swf},
                                                              {"csv", JobTraceFormat::Csv}};
  const auto found = kFormats.find(name);
  if (found == kFormats.end()) {
    return invalid("there is no format '" + name + "'; there are: philly, gavel, swf, csv");
  }
  return found->second;
}

Result<void> keep_between(const ReplayOptions& options, std::vector<TraceJob>& jobs) {
  for (const auto& [text, is_from] : {std::pair(options.from, true), {options.until, false}}) {
    if (text.empty()) {
      continue;
    }
    const std::optional<Instant> at = parse_time(text);
    if (!at) {
      return invalid("'" + text + "' is not a time like 2017-10-01 or 2017-10-01 13:30:00");
    }
    std::erase_if(jobs, [&, from = is_from](const TraceJob& job) {
      return from ? job.submitted < *at : job.submitted >= *at;
    });
  }
  if (jobs.empty()) {
    return invalid("no job is left; are --from and --until within the trace?");
  }
  return {};
}

// "loguniform:A-B".
std::optional<std::pair<std::int64_t, std::int64_t>> factors_of(const std::string& text) {
  constexpr std::string_view kPrefix = "loguniform:";
  if (!text.starts_with(kPrefix)) {
    return std::nullopt;
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  const char* const end = text.data() + text.size();
  const auto [dash, low_code] = std::from_chars(text.data() + kPrefix.size(), end, low);
  if (low_code != std::errc() || dash == end || *dash != '-') {
    return std::nullopt;
  }
  const auto [rest, high_code] = std::from_chars(dash + 1, end, high);
  if (high_code != std::errc() || rest != end || low < 1 || high < low || high > kFactorMax) {
    return std::nullopt;
  }
  return std::pair(low, high);
}

Result<std::vector<Duration>> declared_of(const std::vector<TraceJob>& jobs,
                                          const ReplayOptions& options) {
  const auto factors = factors_of(options.declared);
  const bool by_trace = options.declared == "trace";
  if (!factors && !by_trace && options.declared != "exact") {
    return invalid("--declared is exact, trace or loguniform:A-B with 1 ≤ A ≤ B ≤ " +
                   std::to_string(kFactorMax) + ", not '" + options.declared + "'");
  }
  Prng random(options.seed);
  std::vector<Duration> declared;
  for (const TraceJob& job : jobs) {
    Duration asked = job.duration;
    if (factors) {
      const double draw = static_cast<double>(random.below(1'000'000)) / 1e6;
      const auto low = static_cast<double>(factors->first);
      const double factor = low * std::pow(static_cast<double>(factors->second) / low, draw);
      asked = Duration(std::llround(static_cast<double>(job.duration.count()) * factor));
    } else if (by_trace) {
      asked = std::max(job.duration, job.declared.value_or(job.duration));
    }
    declared.push_back(asked);
  }
  return declared;
}

std::string spread_json(const Spread& spread) {
  return "{\"average\":" + fixed(spread.average, 1) + ",\"p50\":" + fixed(spread.p50, 1) +
         ",\"p99\":" + fixed(spread.p99, 1) + "}";
}

std::string class_json(const SizeClass& one) {
  return "{\"gpus_min\":" + std::to_string(one.gpus_min) +
         ",\"gpus_max\":" + std::to_string(one.gpus_max) + ",\"jobs\":" + std::to_string(one.jobs) +
         ",\"jct_s\":" + spread_json(one.completion_s) +
         ",\"queueing_s\":" + spread_json(one.queueing_s) + "}";
}

std::string json_of(const ReplayReport& report) {
  std::string json = "\"jobs\":" + std::to_string(report.jobs) +
                     ",\"refused\":" + std::to_string(report.refused) +
                     ",\"jct_s\":" + spread_json(report.all.completion_s) +
                     ",\"queueing_s\":" + spread_json(report.all.queueing_s) + ",\"by_size\":[";
  for (const SizeClass& one : report.classes) {
    json += (&one == &report.classes.front() ? "" : ",") + class_json(one);
  }
  json += "],\"makespan_s\":" + fixed(report.makespan_s, 0) +
          ",\"allocated_percent\":" + fixed(report.allocated_percent, 2) +
          ",\"fragmented_percent\":" + fixed(report.fragmented_percent, 2) + ",\"days\":[";
  for (const Day& day : report.days) {
    json += (&day == &report.days.front() ? "" : ",") + ("{\"day\":" + std::to_string(day.number)) +
            ",\"allocated_percent\":" + fixed(day.allocated_percent, 2) +
            ",\"fragmented_percent\":" + fixed(day.fragmented_percent, 2) +
            ",\"jobs_waiting\":" + fixed(day.jobs_waiting, 1) + "}";
  }
  return json + "],\"gpu_hours\":" + fixed(report.gpu_hours, 0) +
         ",\"gpu_hours_lost\":" + fixed(report.gpu_hours_lost, 0) +
         ",\"leases_cut\":" + std::to_string(report.leases_cut) +
         ",\"revenue\":" + fixed(report.revenue, 2) +
         ",\"price_per_gpu_hour\":" + fixed(report.price_mean, 4) +
         ",\"price_volatility_percent\":" + fixed(report.price_volatility_percent, 3) +
         ",\"slowdown_gini\":" + fixed(report.slowdown_gini, 3) +
         ",\"slowdown_worst\":" + fixed(report.slowdown_worst, 3);
}

std::string conditions_json(const ReplayOptions& options) {
  return "{\"format\":" + json_string(options.format) + ",\"from\":" + json_string(options.from) +
         ",\"until\":" + json_string(options.until) +
         ",\"declared\":" + json_string(options.declared) +
         ",\"seed\":" + std::to_string(options.seed) +
         ",\"nodes\":" + std::to_string(options.nodes) +
         ",\"gpus_per_node\":" + std::to_string(options.gpus_per_node) +
         ",\"version\":" + json_string(BMGPU_VERSION) + "}";
}

std::string table_of(const ReplayReport& report) {
  std::string text;
  const auto line = [&](const std::string& name, const SizeClass& one) {
    text += name + ": " + std::to_string(one.jobs) + " jobs, completion " +
            fixed(one.completion_s.average, 0) + " s on average, p50 " +
            fixed(one.completion_s.p50, 0) + ", p99 " + fixed(one.completion_s.p99, 0) +
            "; queueing " + fixed(one.queueing_s.average, 0) + " s on average\n";
  };
  line("all", report.all);
  for (const SizeClass& one : report.classes) {
    line(std::to_string(one.gpus_min) + " to " + std::to_string(one.gpus_max) + " GPUs", one);
  }
  return text + "allocated " + fixed(report.allocated_percent, 1) + " %, of the free GPUs " +
         fixed(report.fragmented_percent, 1) + " % on nodes in use\n";
}

int run_and_print(const ReplayOptions& options, bool json) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<ReplayResult> result = run_replay_command(options);
  if (!result) {
    std::cerr << "bmsim: " << result.error().message << "\n";
    return kUsage;
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (!json) {
    std::cout << table_of(result->report);
    return 0;
  }
  std::cout << "{\"scheduler\":" << json_string(options.scheduler) << "," << json_of(result->report)
            << ",\"decisions\":" << result->decisions << ",\"decisions_per_s\":"
            << fixed(static_cast<double>(result->decisions) / wall.count(), 0)
            << ",\"conditions\":" << conditions_json(options) << "}\n";
  return 0;
}

}  // namespace

Result<ReplayResult> run_replay_command(const ReplayOptions& options) {
  const Result<JobTraceFormat> format = format_of(options.format);
  if (!format) {
    return format.error();
  }
  Result<std::vector<TraceJob>> jobs = read_job_trace(options.trace, *format);
  if (!jobs) {
    return jobs.error();
  }
  if (const Result<void> kept = keep_between(options, *jobs); !kept) {
    return kept.error();
  }
  const Result<std::vector<Duration>> declared = declared_of(*jobs, options);
  if (!declared) {
    return declared.error();
  }
  const ReplayCluster cluster{options.nodes, options.gpus_per_node};
  ReplayRun run;
  if (options.scheduler == "market") {
    run = replay_market(*jobs, *declared, cluster);
  } else if (options.scheduler == "fifo" || options.scheduler == "sjf") {
    run = replay_scheduler(*jobs, *declared, cluster,
                           options.scheduler == "fifo" ? Discipline::Fifo : Discipline::Shortest);
  } else {
    return invalid("there is no scheduler '" + options.scheduler +
                   "'; there are: market, fifo, sjf");
  }
  return ReplayResult{report_of(*jobs, run, cluster), run.decisions};
}

void add_replay(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ReplayOptions>();
  const auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("replay", "A trace of jobs on the market's own core, on a virtual clock");
  command->add_option("--trace", options->trace, "File of jobs")->required();
  command->add_option("--format", options->format, "philly, gavel, swf or csv")->required();
  command->add_option("--from", options->from, "Only jobs from this time on, UTC: 2017-10-01");
  command->add_option("--until", options->until, "Only jobs before this time");
  command->add_option("--nodes", options->nodes, "Nodes")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, core::Limits::kNodesMax));
  command->add_option("--gpus-per-node", options->gpus_per_node, "GPUs of each node")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, core::Limits::kGpusPerNodeMax));
  command
      ->add_option("--declared", options->declared,
                   "The time that jobs ask for: exact, trace or loguniform:A-B times the real one")
      ->capture_default_str();
  command->add_option("--scheduler", options->scheduler, "market, fifo or sjf")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the declared times")->capture_default_str();
  command->add_flag("--json", *json, "One JSON document instead of a table");
  command->callback([options, json, &exit_code] { exit_code = run_and_print(*options, *json); });
}

}  // namespace bmgpu::sim
