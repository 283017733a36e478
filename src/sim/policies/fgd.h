// FGD (fragmentation gradient descent, USENIX ATC'23): the node whose expected fragmentation for
// the typical requests grows least.
//
// Fragmentation of a node = Σ over typical requests, weighted by their share, of the GPU
// thousandths that it cannot use: all of them if it asks for no GPU, for another model, or does not
// fit; else what is left on devices that are too full for it. Memory is ignored.
// Score = int(100 · sigmoid((before − after) / 1000)). The rounding to 101 levels matters: with
// exact values the policy loses 2 to 7 points.
#pragma once

#include "sim/policies/policy.h"

namespace bmgpu::sim {

class FgdPolicy : public Policy {
 public:
  explicit FgdPolicy(const std::vector<core::TypicalRequest>& typical);
  std::int32_t score(const Node& node, const Request& request) const override;
  std::size_t device(const Node& node, const Request& request) override;

  // In GPU thousandths.
  double fragmentation(const Node& node) const;

 private:
  struct Best {
    std::int32_t score = kDoesNotFit;
    std::size_t device = 0;
  };
  Best best(const Node& node, const Request& request) const;

  struct Weighted {
    Request request;
    double share = 0;  // of all; they add up to 1
  };
  std::vector<Weighted> typical_;
};

}  // namespace bmgpu::sim
