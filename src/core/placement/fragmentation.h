// The fragmentation pass: how much of a node's idle GPUs the typical request could not use.
//
// F = Σ over typical requests, weighted by their count, of the GPU thousandths that it cannot use:
// all idle ones if it asks for no GPU or another model, or does not fit (GPUs, CPU); else what is
// left on GPUs that are too full for it (Weng et al., FGD, USENIX ATC'23). Memory does not count.
// Cost: one search per distinct (thousandths, GPUs) of the mix, however many requests it has.
#pragma once

#include <cstdint>
#include <vector>

#include "core/placement/shape.h"

namespace bmgpu::core {

class Fragmentation {
 public:
  // Requests for a node's last model included; a model that no request names costs nothing.
  Fragmentation(const std::vector<TypicalRequest>& mix, std::int32_t models);

  // Expected unusable GPU thousandths × 1000, rounded down; 0 for an empty mix.
  std::int64_t expected_loss(const NodeShape& node) const;

 private:
  // Requests of one size that a model can serve: total counts by CPU need.
  struct Step {
    std::int64_t cpu_millis = 0;
    std::int64_t count = 0;  // of requests that need at most cpu_millis
  };
  struct Size {
    std::int32_t thousandths = 0;
    std::int32_t gpus = 0;
    std::vector<Step> steps;  // by rising cpu_millis
  };
  std::vector<std::vector<Size>> sizes_;  // by model
  std::int64_t count_ = 0;                // of all requests
};

}  // namespace bmgpu::core
