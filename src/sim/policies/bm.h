// bm: the market's own placement (core/placement/ranking.h).
#pragma once

#include "core/placement/ranking.h"
#include "sim/policies/policy.h"

namespace bmgpu::sim {

class BmPolicy : public Policy {
 public:
  // The mix is the trace's own, which includes rare requests.
  BmPolicy(const OpenbTrace& trace, core::RankPasses passes);
  std::int32_t score(const Node& node, const Request& request) const override;
  std::size_t device(const Node& node, const Request& request) override;

 private:
  core::Ranking ranking_;
};

}  // namespace bmgpu::sim
