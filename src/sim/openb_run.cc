#include "sim/openb_run.h"

#include <cmath>
#include <optional>
#include <span>

#include "sim/score_table.h"

namespace bmgpu::sim {
namespace {

struct Counts {
  std::int64_t arrived = 0;    // GPU thousandths
  std::int64_t allocated = 0;  // GPU thousandths
  std::int64_t cpu_only_placed = 0;
  std::int64_t cpu_only_arrived = 0;
};

// The mean of what is recorded after each arrival at 100 % load.
class FullLoad {
 public:
  explicit FullLoad(std::int64_t capacity) : capacity_(static_cast<double>(capacity)) {}

  void record(const Counts& counts) {
    const long percent = std::lround(100 * static_cast<double>(counts.arrived) / capacity_);
    const OpenbOutcome now{
        // Two decimals, as published.
        std::round(10'000 * static_cast<double>(counts.allocated) / capacity_) / 100,
        static_cast<double>(counts.cpu_only_placed), static_cast<double>(counts.cpu_only_arrived)};
    if (percent < 100) {
      below_ = now;
    } else if (percent == 100) {
      ++events_;
      sum_.allocated_percent += now.allocated_percent;
      sum_.cpu_only_placed += now.cpu_only_placed;
      sum_.cpu_only_arrived += now.cpu_only_arrived;
    }
  }

  OpenbOutcome mean() const {
    if (events_ == 0) {
      return below_;
    }
    const auto events = static_cast<double>(events_);
    return {sum_.allocated_percent / events, sum_.cpu_only_placed / events,
            sum_.cpu_only_arrived / events};
  }

 private:
  double capacity_;
  std::int64_t events_ = 0;
  OpenbOutcome sum_;
  OpenbOutcome below_;
};

}  // namespace

OpenbOutcome run_openb(const OpenbTrace& trace, const OpenbArrivals& arrivals, Policy& policy) {
  std::vector<Node> nodes;
  nodes.reserve(arrivals.nodes.size());
  for (const std::size_t node : arrivals.nodes) {
    nodes.push_back(trace.nodes[node]);
  }
  ScoreTable table(policy, nodes, trace.requests.size());
  FullLoad full(trace.gpu_thousandths());
  Counts counts;
  for (const std::size_t pod : arrivals.pods) {
    const Request& request = trace.requests[pod];
    const std::optional<std::size_t> rank = policy.choose(table.row(pod, request));
    if (rank) {
      Node& node = nodes[*rank];
      take(node, request, request.is_share() ? policy.device(node, request) : 0);
      table.changed(*rank);
      counts.allocated += request.gpu_thousandths();
      counts.cpu_only_placed += request.gpus == 0 ? 1 : 0;
    }
    counts.arrived += request.gpu_thousandths();
    counts.cpu_only_arrived += request.gpus == 0 ? 1 : 0;
    full.record(counts);
  }
  return full.mean();
}

}  // namespace bmgpu::sim
