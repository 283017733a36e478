#include "sim/chaos/command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "sim/chaos/seed_runner.h"
#include "sim/chaos/world.h"

namespace bmgpu::sim {
namespace {

constexpr int kViolated = 1;
constexpr int kUsage = 2;
constexpr std::uint64_t kSeedsMax = 1'000'000;
constexpr std::size_t kShown = 10;  // violations told in full

struct Options {
  std::string seeds = "1-200";
  unsigned jobs = 1;
  std::size_t trace_lines = 64;
  bool json = false;
};

struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t violations = 0;
  std::uint64_t actions = 0;
  std::uint64_t core_events = 0;
  std::uint64_t digest = 0;  // independent of the order in which seeds end

  void add(const SeedResult& result) {
    ++seeds;
    violations += result.violation ? 1 : 0;
    actions += result.actions;
    core_events += result.core_events;
    Digest one;
    one.add(result.seed);
    one.add(result.digest);
    digest ^= one.value();
  }
};

void explain(const SeedResult& result) {
  const Violation& violation = *result.violation;
  std::cerr << "seed " << result.seed << " breaks " << violation.rule;
  if (violation.at != Instant()) {
    std::cerr << " at " << seconds_text(violation.at - kWorldStart) << " s";
  }
  std::cerr << ": " << violation.detail << "\n";
  for (const std::string& line : result.trace) {
    std::cerr << "  " << line << "\n";
  }
  std::cerr << "again: bmsim chaos --seeds " << result.seed << "\n";
}

std::string hex(std::uint64_t value) {
  std::ostringstream text;
  text << std::hex << std::setw(16) << std::setfill('0') << value;
  return text.str();
}

void print(const Totals& totals, const Options& options, double wall_seconds) {
  const auto simulated_ms = static_cast<double>((kSafetyPhase + kLivenessPhase).count()) *
                            static_cast<double>(totals.seeds);
  const double speedup = simulated_ms / 1000 / wall_seconds;
  const double per_seed = wall_seconds * options.jobs / static_cast<double>(totals.seeds);
  std::ostringstream text;
  text << std::fixed << std::setprecision(3);
  if (options.json) {
    text << "{\"violations\": " << totals.violations << ", \"seeds\": " << totals.seeds
         << ", \"events\": " << totals.core_events << ", \"actions\": " << totals.actions
         << ", \"speedup\": " << std::setprecision(0) << speedup << std::setprecision(3)
         << ", \"seconds_per_seed\": " << per_seed << ", \"jobs\": " << options.jobs
         << ", \"digest\": \"" << hex(totals.digest) << "\"}\n";
  } else {
    text << totals.seeds << " seeds, " << totals.violations << " violations, " << totals.core_events
         << " market events, " << totals.actions << " actions, " << per_seed
         << " s per seed and core, " << std::setprecision(0) << speedup
         << " times real time, digest " << hex(totals.digest) << "\n";
  }
  std::cout << text.str();
}

int run_chaos(const Options& options) {
  const Result<SeedRange> seeds = parse_seeds(options.seeds, kSeedsMax);
  if (!seeds) {
    std::cerr << "bmsim: " << seeds.error().message << "\n";
    return kUsage;
  }
  const auto begin = std::chrono::steady_clock::now();
  Totals totals;
  const WorldOptions world{Sabotage::None, options.trace_lines};
  run_seeds(*seeds, options.jobs, world, [&](const SeedResult& result) {
    totals.add(result);
    if (result.violation && totals.violations <= kShown) {
      explain(result);
    }
  });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  print(totals, options, wall.count());
  return totals.violations == 0 ? 0 : kViolated;
}

}  // namespace

void add_chaos(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* chaos = app.add_subcommand(
      "chaos", "A market, its nodes and its tenants on virtual time while things go wrong");
  chaos->add_option("--seeds", options->seeds, "Worlds, A-B or A");
  chaos->add_option("--jobs", options->jobs, "Processes at once; the results do not depend on it")
      ->check(CLI::Range(1U, 256U));
  chaos->add_option("--last", options->trace_lines, "Events told when a rule is broken")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}));
  chaos->add_flag("--json", options->json, "One JSON document instead of a line");
  chaos->callback([options, &exit_code] { exit_code = run_chaos(*options); });
}

}  // namespace bmgpu::sim
