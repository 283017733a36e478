// ln and pow in integers.
//
// Both work with 62 fractional bits inside and round once to 40. ln: x = m·2^e with m near 1, then
// ln m = 2·atanh((m−1)/(m+1)), whose series gains five bits a term. pow: base^t = e^−y with
// y = −t·ln base, then 2^−k·e^−r with r < ln 2 and the Taylor series of e^−r.
#include "base/fixed.h"

#include <limits>

#include "base/check.h"
#include "base/wide.h"

namespace bmgpu {
namespace {

constexpr int kInnerBits = 62;
constexpr int kExtraBits = kInnerBits - Fixed::kFractionBits;
constexpr std::int64_t kOne = std::int64_t{1} << kInnerBits;
constexpr std::int64_t kLn2 = 3'196'577'161'300'663'915;    // ln 2 × 2^62
constexpr std::int64_t kSqrt2 = 6'521'908'912'666'391'106;  // √2 × 2^62
constexpr int kAtanhTerms = 13;                             // 0.0295^13 < 2^−62
constexpr int kExpTerms = 20;                               // 0.694^20 / 20! < 2^−62

Fixed narrow(Wide raw, const char* what) {
  check(raw <= std::numeric_limits<std::int64_t>::max(), what);
  check(raw >= std::numeric_limits<std::int64_t>::min(), what);
  return Fixed{static_cast<std::int64_t>(raw)};
}

// value / 2^bits, rounded half away from zero.
Wide shift_rounded(Wide value, int bits) {
  const Wide half = Wide{1} << (bits - 1);
  return value >= 0 ? (value + half) >> bits : -((-value + half) >> bits);
}

std::int64_t multiply_inner(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>((Wide{a} * b) >> kInnerBits);
}

// ln x with kInnerBits fractional bits.
Wide ln_inner(Fixed x) {
  check(x.raw > 0, "ln: the argument is not positive");
  const int top_bit = 63 - __builtin_clzll(static_cast<std::uint64_t>(x.raw));
  std::int64_t mantissa = x.raw << (kInnerBits - top_bit);  // in [1, 2)
  int exponent = top_bit - Fixed::kFractionBits;
  if (mantissa > kSqrt2) {
    mantissa >>= 1;
    ++exponent;
  }
  const Wide numerator = Wide{mantissa - kOne} << kInnerBits;
  const Wide denominator = Wide{mantissa} + kOne;
  const auto z = static_cast<std::int64_t>(numerator / denominator);
  const std::int64_t z_squared = multiply_inner(z, z);
  std::int64_t power = z;
  std::int64_t sum = z;
  for (int term = 1; term <= kAtanhTerms; ++term) {
    power = multiply_inner(power, z_squared);
    sum += power / (2 * term + 1);
  }
  return 2 * Wide{sum} + Wide{exponent} * kLn2;
}

}  // namespace

Fixed Fixed::from_ratio(std::int64_t numerator, std::int64_t denominator) {
  check(denominator > 0, "from_ratio: the denominator is not positive");
  const Wide scaled = Wide{numerator} * (Wide{1} << kFractionBits);
  const Wide half = denominator / 2;
  return narrow((scaled >= 0 ? scaled + half : scaled - half) / denominator,
                "from_ratio: overflows");
}

Fixed operator+(Fixed a, Fixed b) { return narrow(Wide{a.raw} + b.raw, "fixed: sum overflows"); }

Fixed operator-(Fixed a, Fixed b) {
  return narrow(Wide{a.raw} - b.raw, "fixed: difference overflows");
}

Fixed operator*(Fixed a, Fixed b) {
  return narrow(shift_rounded(Wide{a.raw} * b.raw, Fixed::kFractionBits),
                "fixed: product overflows");
}

Fixed ln(Fixed x) { return narrow(shift_rounded(ln_inner(x), kExtraBits), "ln: overflows"); }

Fixed pow_unit(Fixed base, Fixed exponent) {
  check(base.raw > 0, "pow_unit: the base is not positive");
  check(base <= Fixed::from_int(1), "pow_unit: the base is above 1");
  check(exponent.raw >= 0, "pow_unit: the exponent is negative");
  const Wide slope = -ln_inner(base);
  if (slope <= 0 || exponent.raw == 0) {
    return Fixed::from_int(1);
  }
  const Wide vanishes = Wide{Fixed::kFractionBits} << (kInnerBits + Fixed::kFractionBits);
  if (exponent.raw > vanishes / slope) {  // e^-40 is below the resolution
    return Fixed{};
  }
  const Wide y = slope * exponent.raw >> Fixed::kFractionBits;
  const Wide halvings = y / kLn2;
  if (halvings > Fixed::kFractionBits + 1) {
    return Fixed{};
  }
  const auto rest = static_cast<std::int64_t>(y - halvings * kLn2);
  std::int64_t power = kOne;
  for (int term = kExpTerms; term >= 1; --term) {
    power = kOne - multiply_inner(rest, power) / term;
  }
  return Fixed{
      static_cast<std::int64_t>(shift_rounded(power, kExtraBits + static_cast<int>(halvings)))};
}

}  // namespace bmgpu
