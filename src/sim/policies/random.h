// Random: any node that fits, any device that fits, all equally likely.
#pragma once

#include "base/prng.h"
#include "sim/policies/policy.h"

namespace bmgpu::sim {

class RandomPolicy : public Policy {
 public:
  explicit RandomPolicy(std::uint64_t seed) : prng_(seed) {}
  std::int32_t score(const Node& node, const Request& request) const override;
  std::optional<std::size_t> choose(std::span<const std::int32_t> scores) override;
  std::size_t device(const Node& node, const Request& request) override;

 private:
  Prng prng_;
};

}  // namespace bmgpu::sim
