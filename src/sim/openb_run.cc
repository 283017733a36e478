#include "sim/openb_run.h"

#include <cmath>
#include <optional>
#include <span>

#include "sim/score_table.h"

namespace bmgpu::sim {
namespace {

// Sums what is recorded after each arrival at 100 % load.
class FullLoad {
 public:
  explicit FullLoad(std::int64_t capacity) : capacity_(static_cast<double>(capacity)) {}

  void record(std::int64_t arrived, std::int64_t allocated, std::int64_t cpu_only_placed,
              std::int64_t cpu_only_arrived) {
    const double percent = 100 * static_cast<double>(arrived) / capacity_;
    if (std::lround(percent) != 100) {
      return;
    }
    ++events_;
    // Two decimals, as published.
    sum_.allocated_percent +=
        std::round(10'000 * static_cast<double>(allocated) / capacity_) / 100;
    sum_.cpu_only_placed += static_cast<double>(cpu_only_placed);
    sum_.cpu_only_arrived += static_cast<double>(cpu_only_arrived);
  }

  OpenbOutcome mean() const {
    const double events = events_ == 0 ? 1 : static_cast<double>(events_);
    return {sum_.allocated_percent / events, sum_.cpu_only_placed / events,
            sum_.cpu_only_arrived / events};
  }

 private:
  double capacity_;
  std::int64_t events_ = 0;
  OpenbOutcome sum_;
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
  std::int64_t arrived = 0;
  std::int64_t allocated = 0;
  std::int64_t cpu_only_placed = 0;
  std::int64_t cpu_only_arrived = 0;
  for (const std::size_t pod : arrivals.pods) {
    const Request& request = trace.requests[pod];
    const std::optional<std::size_t> rank = policy.choose(table.row(pod, request));
    if (rank) {
      Node& node = nodes[*rank];
      take(node, request, request.is_share() ? policy.device(node, request) : 0);
      table.changed(*rank);
      allocated += request.gpu_thousandths();
      cpu_only_placed += request.gpus == 0 ? 1 : 0;
    }
    arrived += request.gpu_thousandths();
    cpu_only_arrived += request.gpus == 0 ? 1 : 0;
    full.record(arrived, allocated, cpu_only_placed, cpu_only_arrived);
  }
  return full.mean();
}

}  // namespace bmgpu::sim
