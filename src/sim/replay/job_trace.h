// Traces of jobs: when each came, how many GPUs it held and for how long.
//
// Formats:
//   philly  columns timestamp (YYYY-MM-DD HH:MM:SS), duration (s), num_gpus, cluster; in any order
//   gavel   columns vc, arrival_s, gpus, v100_s; in any order; rows without v100_s are left out
//   swf     Standard Workload Format; processors are GPUs; jobs that never ran are left out
//   csv     columns submit_s, duration_s, gpus, account and, if it is there, declared_s
// The last two are in the order of their times. Every error names file, line and column.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace bmgpu::sim {

struct TraceJob {
  Instant submitted;
  Duration duration;                 // of its work, > 0
  std::int64_t gpus = 0;             // ≥ 1
  std::string account;               // whose it is
  std::optional<Duration> declared;  // what its owner said, where the trace knows it
  bool operator==(const TraceJob&) const = default;
};

struct JobTraceLimits {
  static constexpr std::int64_t kGpusMax = 4096;             // of a job
  static constexpr Duration kDurationMax = hours(24) * 365;  // of a job
  static constexpr Instant kTimeMax{4'102'444'800'000};      // 2100
};

enum class JobTraceFormat { Philly, Gavel, Swf, Csv };

// By time, ties as in the file. InvalidArgument for a bad file.
Result<std::vector<TraceJob>> read_job_trace(const std::string& path, JobTraceFormat format);

// "2017-10-01" or "2017-10-01 13:30:00", UTC; absent if it is neither.
std::optional<Instant> parse_time(std::string_view text);

}  // namespace bmgpu::sim
