// The packing pass: what is left of a node is worth the dearest requests that would fill it.
//
// With the prices of packing_prices.h a GPU with r thousandths left is worth
// g(r) = max Σ prices of sizes that add up to at most r, so a place loses nothing exactly if it
// lies on a best pattern: 470 beside 470 does, 320 beside 470 does not while 650 wants it. CPU
// counts per node: for a price y of a core each size costs y times its CPU, and the node is worth
// min over y of (y · CPU left + Σ over GPUs g_y(left)), the Lagrangian bound over a grid of y.
// Cost: one table look-up per GPU and y.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/placement/packing_prices.h"
#include "core/placement/shape.h"

namespace bmgpu::core {

class Packing {
 public:
  Packing(const std::vector<PricedSize>& sizes, std::int32_t models);

  // In millionths of a GPU.
  std::int64_t worth_micros(const NodeShape& node) const;

 private:
  static constexpr std::size_t kCpuPrices = 9;
  // worth_[model][cpu price][grains left], in millionths of a GPU.
  using Table = std::array<std::array<std::int32_t, kGrainsPerGpu + 1>, kCpuPrices>;
  std::array<std::int64_t, kCpuPrices> cpu_prices_{};  // millionths of a GPU per core
  std::vector<Table> worth_;
};

}  // namespace bmgpu::core
