// What a replay says: waiting and completion by size of job, use of the cluster, money, fairness.
#pragma once

#include <string>
#include <vector>

#include "sim/replay/replay.h"

namespace bmgpu::sim {

struct Spread {
  double average = 0;
  double p50 = 0;
  double p99 = 0;  // the least value that is not below 99 % of them
};

// Jobs with GPUs in [gpus_min, gpus_max].
struct SizeClass {
  std::int64_t gpus_min = 0;
  std::int64_t gpus_max = 0;
  std::int64_t jobs = 0;
  Spread completion_s{};  // from submission to the end of the work
  Spread queueing_s{};    // the part of it that is not work
};

struct Day {
  std::int64_t number = 0;  // from the first submission, 0 on
  double allocated_percent = 0;
  double fragmented_percent = 0;  // of free GPUs: on nodes that are in use
  double jobs_waiting = 0;
};

struct ReplayReport {
  std::int64_t jobs = 0;
  std::int64_t refused = 0;  // wider than the cluster
  SizeClass all;
  std::vector<SizeClass> classes;  // 1, 2, 3-4, 5-8, … doubling; those with jobs
  double makespan_s = 0;
  double allocated_percent = 0;   // while jobs were submitted
  double fragmented_percent = 0;  // the same
  std::vector<Day> days;
  double gpu_hours = 0;  // of work
  double gpu_hours_lost = 0;
  std::int64_t leases_cut = 0;
  double revenue = 0;
  double price_mean = 0;                // of a GPU-hour
  double price_volatility_percent = 0;  // standard deviation of the changes by quarter hour
  double slowdown_gini = 0;   // of the accounts' mean slowdowns: completion by duration or 10 s
  double slowdown_worst = 0;  // of the account that fares worst, by the mean over accounts
};

ReplayReport report_of(const std::vector<TraceJob>& jobs, const ReplayRun& run,
                       const ReplayCluster& cluster);

}  // namespace bmgpu::sim
