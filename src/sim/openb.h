// `bmsim openb`: placement policies on openb traces by the published protocol.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::sim {

struct OpenbOptions {
  static constexpr std::uint64_t kSeedsMax = 1000;
  std::string node_file;
  std::vector<std::string> pod_files;  // one list each
  std::string policy = "all";
  std::string seeds;      // "A-B" or "A", at most kSeedsMax
  std::int64_t jobs = 1;  // threads; the results do not depend on it
};

// Of one policy on one list, over the seeds.
struct OpenbResult {
  std::string policy;
  std::string list;             // the pod file's name without folder, ".csv" and "openb_pod_list_"
  double mean = 0;              // GPUs allocated at 100 % load, percent
  double sd = 0;                // of the population of seeds
  double cpu_only_placed = 0;   // pods, mean over the seeds
  double cpu_only_arrived = 0;  // pods, mean over the seeds
  std::size_t nodes = 0;
  std::int64_t gpus = 0;
  std::size_t pods = 0;  // of the list
};

// Runs every (list, policy, seed). `progress(done, all)` is called after each, by any thread, one
// at a time. Results by list as given, then by policy. InvalidArgument for an unknown policy, bad
// seeds or a bad file.
Result<std::vector<OpenbResult>> run_openb_command(
    const OpenbOptions& options, const std::function<void(std::size_t, std::size_t)>& progress);

// A table for people, or one JSON document per line.
std::string openb_table(const std::vector<OpenbResult>& results);
std::string openb_json(const std::vector<OpenbResult>& results, const OpenbOptions& options);

}  // namespace bmgpu::sim
