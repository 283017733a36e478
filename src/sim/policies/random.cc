#include "sim/policies/random.h"

#include <algorithm>

namespace bmgpu::sim {

std::int32_t RandomPolicy::score(const Node&, const Request&) const { return 0; }

std::optional<std::size_t> RandomPolicy::choose(std::span<const std::int32_t> scores) {
  const auto fitting = static_cast<std::uint64_t>(std::count(scores.begin(), scores.end(), 0));
  if (fitting == 0) {
    return std::nullopt;
  }
  std::uint64_t skip = prng_.below(fitting);
  for (std::size_t rank = 0; rank < scores.size(); ++rank) {
    if (scores[rank] == 0 && skip-- == 0) {
      return rank;
    }
  }
  return std::nullopt;
}

std::size_t RandomPolicy::device(const Node& node, const Request& request) {
  std::vector<std::size_t> fitting;
  for (std::size_t device = 0; device < node.gpus.size(); ++device) {
    if (node.gpus[device] >= request.thousandths) {
      fitting.push_back(device);
    }
  }
  return fitting[prng_.below(fitting.size())];
}

}  // namespace bmgpu::sim
