#include "sim/policies/policy.h"

#include <algorithm>
#include <array>

#include "sim/policies/bestfit.h"
#include "sim/policies/bm.h"
#include "sim/policies/dotprod.h"
#include "sim/policies/fgd.h"
#include "sim/policies/gpuclustering.h"
#include "sim/policies/gpupacking.h"
#include "sim/policies/random.h"

namespace bmgpu::sim {

std::optional<std::size_t> Policy::choose(std::span<const std::int32_t> scores) {
  const auto best = std::max_element(scores.begin(), scores.end());
  if (best == scores.end() || *best == kDoesNotFit) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(best - scores.begin());
}

std::size_t Policy::device(const Node& node, const Request& request) {
  return tightest_device(node, request);
}

std::span<const NamedPolicy> all_policies() {
  static const std::array<NamedPolicy, 7> kPolicies = {{
      {"random", [](const auto& in) { return std::make_unique<RandomPolicy>(in.seed); }},
      {"dotprod", [](const auto&) { return std::make_unique<DotProdPolicy>(); }},
      {"gpuclustering", [](const auto&) { return std::make_unique<GpuClusteringPolicy>(); }},
      {"gpupacking", [](const auto&) { return std::make_unique<GpuPackingPolicy>(); }},
      {"bestfit", [](const auto&) { return std::make_unique<BestFitPolicy>(); }},
      {"fgd", [](const auto& in) { return std::make_unique<FgdPolicy>(in.typical); }},
      {"bm",
       [](const auto& in) { return std::make_unique<BmPolicy>(in.trace, core::RankPasses{}); }},
  }};
  return kPolicies;
}

}  // namespace bmgpu::sim
