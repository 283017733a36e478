// How much of a GPU a request really costs when GPUs are packed as well as they can be.
//
// A request for 810 thousandths costs a whole GPU where nothing fits beside it; two of 470 cost
// half a GPU each. The costs are the dual prices of a linear program: serve the largest multiple of
// the typical mix with the GPUs that there are, each holding a set of shares (a pattern) that adds
// up to at most a whole one. It is solved by the simplex method; the best pattern for given prices,
// a knapsack, is the column that enters (Gilmore and Gomory 1961).
//
// Example: mix {600: 1, 400: 1}: prices 600 → 0.5, 400 → 0.5 would do as well as 0.6 and 0.4; any
// that add up to one GPU are right. Mix {810: 1}: price 1.
//
// Integers only: numbers have 32 fractional bits. CPU is left out here; Packing adds it per node.
// Cost: about 300 steps of (sizes + models)² plus 100 × sizes × models.
#pragma once

#include <cstdint>
#include <vector>

#include "core/placement/shape.h"

namespace bmgpu::core {

// Shares are counted in grains: a request's are rounded up, what is left of a GPU down.
inline constexpr std::int32_t kGrainsPerGpu = 100;
inline constexpr std::int32_t kThousandthsPerGrain = kWholeGpu / kGrainsPerGpu;
inline constexpr std::int64_t kMicrosPerGpu = 1'000'000;

// All typical requests of one size that will do with the same models.
struct PricedSize {
  std::int32_t grains = 0;        // 1 to 100; requests for several GPUs count as whole ones
  std::uint64_t models = 0;       // 0 = any
  std::int64_t gpus = 0;          // asked for by the mix, one by one
  std::int64_t cpu_millis = 0;    // per GPU, on average
  std::int64_t price_micros = 0;  // of a GPU
  bool operator==(const PricedSize&) const = default;
};

// The distinct sizes of the mix, priced. `gpus_of_model[m]`: GPUs of model m in the fleet. If the
// simplex does not end (it does on every trace that we have), a size costs its own share.
std::vector<PricedSize> packing_prices(const std::vector<TypicalRequest>& mix,
                                       const std::vector<std::int64_t>& gpus_of_model);

}  // namespace bmgpu::core
