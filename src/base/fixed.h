// Fixed-point ln and power for prices. Integers only, so that a bill can be recomputed anywhere.
//
// A Fixed has 40 fractional bits: resolution 9.1e-13, range ±8.3 million. Both functions are exact
// to a few units in the last place; tests/core/data/price_vectors.csv pins prices made from them.
#pragma once

#include <compare>
#include <cstdint>

#include "base/check.h"

namespace bmgpu {

struct Fixed {
  static constexpr int kFractionBits = 40;
  std::int64_t raw = 0;  // value × 2^40

  // REQUIRES: |n| < 2^23.
  static constexpr Fixed from_int(std::int64_t n) {
    std::int64_t raw = 0;
    check(!__builtin_mul_overflow(n, std::int64_t{1} << kFractionBits, &raw),
          "from_int: overflows");
    return Fixed{raw};
  }
  // numerator / denominator, rounded half away from zero. REQUIRES: denominator > 0.
  static Fixed from_ratio(std::int64_t numerator, std::int64_t denominator);

  friend constexpr auto operator<=>(Fixed, Fixed) = default;
  friend Fixed operator+(Fixed a, Fixed b);  // overflow is a check()
  friend Fixed operator-(Fixed a, Fixed b);  // overflow is a check()
  friend Fixed operator*(Fixed a, Fixed b);  // rounded half away from zero; overflow is a check()
};

// Natural logarithm. REQUIRES: x > 0.
Fixed ln(Fixed x);

// base^exponent for a base in (0, 1] and exponent ≥ 0; 0 once it is below the resolution.
Fixed pow_unit(Fixed base, Fixed exponent);

}  // namespace bmgpu
