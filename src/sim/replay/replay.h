// A trace of jobs on a virtual clock: by the market's own core, or by a plain scheduler to compare
// it with. What comes out is one ReplayRun for the report.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/money.h"
#include "sim/replay/job_trace.h"

namespace bmgpu::sim {

struct ReplayCluster {
  std::int64_t nodes = 0;          // 1 to core::Limits::kNodesMax
  std::int64_t gpus_per_node = 0;  // 1 to core::Limits::kGpusPerNodeMax
  std::int64_t gpus() const { return nodes * gpus_per_node; }
};

// What became of one job of the trace.
struct JobOutcome {
  std::optional<Instant> started;   // its first work
  std::optional<Instant> finished;  // all of its work is done
  std::int64_t leases = 0;
};

// The cluster at one instant.
struct ClusterSample {
  Instant at;
  std::int64_t gpus_busy = 0;
  std::int64_t gpus_fragmented = 0;  // free, on nodes that are in use
  std::int64_t jobs_waiting = 0;
  std::int64_t gpus_waiting = 0;  // that waiting jobs ask for
};

struct ReplayRun {
  std::vector<JobOutcome> jobs;        // as in the trace
  std::vector<ClusterSample> samples;  // one each hour
  std::vector<Price> slot_prices;      // of one GPU, at the end of each quarter hour
  Money revenue;
  std::int64_t decisions = 0;   // commands that the core was asked to decide
  std::int64_t leases_cut = 0;  // leases that ended before their job's work was done
  double gpu_hours_lost = 0;    // held by leases while their job did not work
};

inline constexpr Duration kSampleEvery = hours(1);

// `declared`: by job, the time that its owner asks for, at least that of its work.
ReplayRun replay_market(const std::vector<TraceJob>& jobs, const std::vector<Duration>& declared,
                        const ReplayCluster& cluster);

// Whole jobs at once, on the fewest nodes, best fit; the first that fits of the first `kBackfill`
// that do not, without a reservation.
enum class Discipline { Fifo, Shortest };
inline constexpr std::int64_t kBackfill = 200;
ReplayRun replay_scheduler(const std::vector<TraceJob>& jobs, const std::vector<Duration>& declared,
                           const ReplayCluster& cluster, Discipline discipline);

}  // namespace bmgpu::sim
