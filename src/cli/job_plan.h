// What `run` and `quote` are asked for: job file and options, merged and checked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace bmgpu::v1 {
class CreateQuoteRequest;
class PlaceOrderRequest;
}  // namespace bmgpu::v1

namespace bmgpu::cli {

// docs/reference/limits.md lists them for people.
struct JobLimits {
  static constexpr std::size_t kCommandBytesMax = 128 * 1024;  // what Linux takes as one argument
  static constexpr std::size_t kCommandWordsMax = 4096;
  static constexpr std::size_t kEnvVariablesMax = 1000;
  static constexpr std::size_t kEnvBytesMax = 256 * 1024;
  static constexpr std::size_t kImageBytesMax = 255;
};

// GPUs and time: all that a price depends on.
struct ResourcePlan {
  std::int64_t gpus = 1;
  std::string gpu;
  std::int64_t gpu_memory_mib_min = 0;  // 0 in each of these: not asked for
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::int64_t scratch_mib = 0;
  std::int64_t duration_ms = 0;
  std::int64_t max_price_micros = 0;  // per GPU-hour
};

struct JobPlan {
  ResourcePlan resources;
  std::string image;
  std::vector<std::string> command;
  std::string shell_syntax;  // see Words; "" if the command has none
  std::vector<std::pair<std::string, std::string>> env;
  std::string workdir;  // a local folder; "" = none
  std::string network;  // "nat" | "none"
  std::string restart;  // "host-failure" | "never"
  std::string name;
  std::string quote;
  bool no_wait = false;
};

// The options that quote and run share, and those of run alone.
std::vector<OptionSpec> resource_options();
std::vector<OptionSpec> job_options();

using Variable = std::function<std::optional<std::string>(const std::string& name)>;

Result<ResourcePlan> resource_plan(const Arguments& arguments);
// Reads the job file (-f) and the environment files named by either.
Result<JobPlan> job_plan(const Arguments& arguments, const Variable& variable);

void fill(const ResourcePlan& plan, v1::CreateQuoteRequest& request);
// All but the work files.
void fill(const JobPlan& plan, v1::PlaceOrderRequest& request);

}  // namespace bmgpu::cli
