// Seeds as they are typed: "42-51" or "42".
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace bmgpu::sim {

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // included
};

// InvalidArgument if it is neither, and beyond `count_max` seeds.
Result<SeedRange> parse_seeds(const std::string& text, std::uint64_t count_max);

}  // namespace bmgpu::sim
