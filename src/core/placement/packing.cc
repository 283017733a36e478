#include "core/placement/packing.h"

#include <algorithm>
#include <limits>

namespace bmgpu::core {
namespace {

constexpr std::int64_t kDearestCore = 120'000;  // millionths of a GPU; each next one is 7/10 of it

using Worths = std::array<std::int32_t, kGrainsPerGpu + 1>;

// What each number of grains is worth on a GPU of the model: a knapsack.
Worths worths(const std::vector<PricedSize>& sizes, std::int32_t model, std::int64_t core_micros) {
  Worths worth{};
  for (std::int32_t grains = 1; grains <= kGrainsPerGpu; ++grains) {
    const auto at = static_cast<std::size_t>(grains);
    worth[at] = worth[at - 1];
    for (const PricedSize& size : sizes) {
      const bool serves = size.models == 0 || (size.models >> model & 1) != 0;
      const std::int64_t cpu = core_micros * size.cpu_millis / 1000;
      if (serves && size.grains <= grains && size.price_micros > cpu) {
        const auto gain = static_cast<std::int32_t>(size.price_micros - cpu);
        worth[at] =
            std::max(worth[at], gain + worth[static_cast<std::size_t>(grains - size.grains)]);
      }
    }
  }
  return worth;
}

}  // namespace

Packing::Packing(const std::vector<PricedSize>& sizes, std::int32_t models) {
  std::int64_t core_micros = kDearestCore;
  for (std::size_t i = 1; i < kCpuPrices; ++i) {  // the first is 0
    cpu_prices_[i] = core_micros;
    core_micros = core_micros * 7 / 10;
  }
  for (std::int32_t model = 0; model < models; ++model) {
    Table& table = worth_.emplace_back();
    for (std::size_t i = 0; i < kCpuPrices; ++i) {
      table[i] = worths(sizes, model, cpu_prices_[i]);
    }
  }
}

std::int64_t Packing::worth_micros(const NodeShape& node) const {
  const Table& table = worth_[static_cast<std::size_t>(node.model)];
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < kCpuPrices; ++i) {
    std::int64_t worth = cpu_prices_[i] * (node.cpu_millis / 1000);
    for (const std::int32_t left : node.gpus) {
      worth += table[i][static_cast<std::size_t>(left / kThousandthsPerGrain)];
    }
    least = std::min(least, worth);
  }
  return least;
}

}  // namespace bmgpu::core
