// `bmsim replay`: job traces on a virtual clock.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sim/replay/report.h"

namespace CLI {
class App;
}

namespace bmgpu::sim {

struct ReplayOptions {
  std::string trace;
  std::string format;                // philly, gavel, swf or csv
  std::string from{};                // only jobs from this time on; empty: all
  std::string until{};               // only jobs before it; empty: all
  std::string declared = "exact";    // exact, trace or loguniform:A-B
  std::string scheduler = "market";  // market, fifo or sjf
  std::int64_t nodes = 64;
  std::int64_t gpus_per_node = 8;
  std::uint64_t seed = 1;  // of declared times
};

struct ReplayResult {
  ReplayReport report;
  std::int64_t decisions = 0;
};

// InvalidArgument for bad options or a bad trace.
Result<ReplayResult> run_replay_command(const ReplayOptions& options);

// Adds the command to `app`; when it was given, `exit_code` says how it went.
void add_replay(CLI::App& app, int& exit_code);

}  // namespace bmgpu::sim
