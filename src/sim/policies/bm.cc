#include "sim/policies/bm.h"

#include <map>

namespace bmgpu::sim {
namespace {

std::vector<core::TypicalRequest> mix_of(const OpenbTrace& trace) {
  std::map<Request, std::int64_t> counts;
  for (const std::size_t pod : trace.pods) {
    ++counts[trace.requests[pod]];
  }
  std::vector<core::TypicalRequest> mix;
  for (const auto& [request, count] : counts) {
    mix.push_back({request, count});
  }
  return mix;
}

core::Fleet fleet_of(const OpenbTrace& trace) {
  core::Fleet fleet;
  fleet.gpus_of_model.resize(trace.models.size());
  for (const Node& node : trace.nodes) {
    fleet.gpus_of_model[static_cast<std::size_t>(node.model)] += std::ssize(node.gpus);
  }
  return fleet;
}

}  // namespace

BmPolicy::BmPolicy(const OpenbTrace& trace, core::RankPasses passes)
    : ranking_(mix_of(trace), fleet_of(trace), passes) {}

std::int32_t BmPolicy::score(const Node& node, const Request& request) const {
  return ranking_.fit(node.shape(), node.requests > 0, request).score;
}

std::size_t BmPolicy::device(const Node& node, const Request& request) {
  return ranking_.fit(node.shape(), node.requests > 0, request).gpu;
}

}  // namespace bmgpu::sim
