#include "sim/openb.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "sim/json_text.h"
#include "sim/openb_run.h"
#include "sim/seeds.h"

namespace bmgpu::sim {
namespace {

Error invalid(std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; }

struct List {
  std::string name;
  OpenbTrace trace;
  std::vector<core::TypicalRequest> typical;
};

// One (list, policy); its outcomes by seed.
struct Series {
  const List* list = nullptr;
  const NamedPolicy* policy = nullptr;
  std::vector<OpenbOutcome> outcomes{};
};

std::string list_name(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string();
  const std::string prefix = "openb_pod_list_";
  return name.starts_with(prefix) && name != prefix ? name.substr(prefix.size()) : name;
}

Result<std::vector<const NamedPolicy*>> chosen_policies(const std::string& name) {
  std::vector<const NamedPolicy*> chosen;
  std::string known = "all";
  for (const NamedPolicy& policy : all_policies()) {
    known += ", " + std::string(policy.name);
    if (name == "all" || name == policy.name) {
      chosen.push_back(&policy);
    }
  }
  if (chosen.empty()) {
    return invalid("there is no policy '" + name + "'; there are: " + known);
  }
  return chosen;
}

OpenbResult summary(const Series& series) {
  OpenbResult result{.policy = std::string(series.policy->name), .list = series.list->name};
  const auto count = static_cast<double>(series.outcomes.size());
  for (const OpenbOutcome& one : series.outcomes) {
    result.mean += one.allocated_percent / count;
    result.cpu_only_placed += one.cpu_only_placed / count;
    result.cpu_only_arrived += one.cpu_only_arrived / count;
  }
  double variance = 0;
  for (const OpenbOutcome& one : series.outcomes) {
    variance += std::pow(one.allocated_percent - result.mean, 2) / count;
  }
  result.sd = std::sqrt(variance);
  const OpenbTrace& trace = series.list->trace;
  result.nodes = trace.nodes.size();
  result.gpus = trace.gpu_thousandths() / 1000;
  result.pods = trace.pods.size();
  return result;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

Result<std::vector<OpenbResult>> run_openb_command(
    const OpenbOptions& options, const std::function<void(std::size_t, std::size_t)>& progress) {
  const Result<SeedRange> seeds = parse_seeds(options.seeds, OpenbOptions::kSeedsMax);
  if (!seeds) {
    return seeds.error();
  }
  const auto policies = chosen_policies(options.policy);
  if (!policies) {
    return policies.error();
  }
  std::vector<List> lists;
  for (const std::string& file : options.pod_files) {
    Result<OpenbTrace> trace = read_openb_trace(options.node_file, file);
    if (!trace) {
      return trace.error();
    }
    std::vector<core::TypicalRequest> typical = typical_requests(*trace);
    lists.push_back(List{list_name(file), std::move(*trace), std::move(typical)});
  }
  const std::size_t count = seeds->last - seeds->first + 1;
  std::vector<Series> all;
  for (const List& list : lists) {
    for (const NamedPolicy* policy : *policies) {
      all.push_back(Series{&list, policy, std::vector<OpenbOutcome>(count)});
    }
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t run = next++; run < all.size() * count; run = next++) {
      Series& series = all[run / count];
      const std::uint64_t seed = seeds->first + run % count;
      const OpenbTrace& trace = series.list->trace;
      const auto policy = series.policy->make(PolicyInputs{trace, series.list->typical, seed});
      series.outcomes[run % count] = run_openb(trace, openb_arrivals(trace, seed), *policy);
      const std::lock_guard lock(mutex);
      progress(++done, all.size() * count);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::int64_t thread = 1; thread < options.jobs; ++thread) {
      threads.emplace_back(work);
    }
    work();
  }
  std::vector<OpenbResult> results;
  for (const Series& series : all) {
    results.push_back(summary(series));
  }
  return results;
}

std::string openb_table(const std::vector<OpenbResult>& results) {
  std::string table =
      padded("LIST", 14) + padded("POLICY", 15) + "ALLOCATED %     SD  CPU-ONLY PLACED\n";
  for (const OpenbResult& result : results) {
    const std::string sd = fixed(result.sd, 2);
    table += padded(result.list, 14) + padded(result.policy, 15) +
             padded(fixed(result.mean, 2), 11) +
             std::string(7 - std::min<std::size_t>(6, sd.size()), ' ') + sd + "  " +
             fixed(result.cpu_only_placed, 1) + " of " + fixed(result.cpu_only_arrived, 1) + "\n";
  }
  return table;
}

std::string openb_json(const std::vector<OpenbResult>& results, const OpenbOptions& options) {
  std::string json;
  for (const OpenbResult& result : results) {
    json += "{\"policy\":" + json_string(result.policy) + ",\"list\":" + json_string(result.list) +
            ",\"mean\":" + fixed(result.mean, 3) + ",\"sd\":" + fixed(result.sd, 3) +
            ",\"cpu_only_placed\":" + fixed(result.cpu_only_placed, 2) +
            ",\"cpu_only_arrived\":" + fixed(result.cpu_only_arrived, 2) +
            ",\"conditions\":{\"figure\":\"percent of GPUs allocated at 100 % arrived load\"" +
            ",\"sd\":\"population over seeds\",\"seeds\":" + json_string(options.seeds) +
            ",\"nodes\":" + std::to_string(result.nodes) +
            ",\"gpus\":" + std::to_string(result.gpus) +
            ",\"pods\":" + std::to_string(result.pods) +
            ",\"arrived_permille\":" + std::to_string(kArrivedPermille) +
            ",\"version\":" + json_string(BMGPU_VERSION) + "}}\n";
  }
  return json;
}

}  // namespace bmgpu::sim
