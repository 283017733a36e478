// Prng: splitmix64 (Steele, Lea, Flood 2014). Same numbers on every machine for a seed. For
// simulation and tests; never for secrets.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace bmgpu {

class Prng {
 public:
  explicit Prng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound) without modulo bias. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    check(bound > 0, "prng: bound is zero");
    const std::uint64_t reject_below = (0 - bound) % bound;
    for (;;) {
      const std::uint64_t draw = next();
      if (draw >= reject_below) {
        return draw % bound;
      }
    }
  }

  // Uniform in [low, high]. REQUIRES: low ≤ high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    check(low <= high, "prng: empty range");
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }

  // True `numerator` times in `denominator`.
  bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return below(denominator) < numerator;
  }

 private:
  std::uint64_t state_;
};

}  // namespace bmgpu
