#include "base/fixed.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/prng.h"

namespace bmgpu {
namespace {

constexpr std::int64_t kLastPlaces = 2;

std::int64_t distance(std::int64_t a, std::int64_t b) { return a < b ? b - a : a - b; }

// Exact values, rounded, of the argument as it is in 40 bits (made with 50-digit decimals).
struct LnVector {
  std::int64_t numerator;
  std::int64_t denominator;
  std::int64_t raw;
};
constexpr LnVector kLnVectors[] = {
    {1, 1, 0},
    {2, 1, 762'123'384'786},
    {3, 1, 1'207'936'985'808},
    {10, 1, 2'531'719'083'691},
    {1, 10, -2'531'719'083'687},
    {1'000'000, 1, 15'190'314'502'144},
    {5'000, 10, 6'833'033'866'286},
    {1, 1'000'000, -15'190'314'129'920},
};

struct PowVector {
  std::int64_t base_numerator;
  std::int64_t base_denominator;
  std::int64_t exponent_numerator;
  std::int64_t exponent_denominator;
  std::int64_t raw;
};
constexpr PowVector kPowVectors[] = {
    {9, 10, 1, 4, 1'070'928'444'692},
    {9, 10, 19, 2, 404'113'785'951},
    {9, 10, 24, 1, 87'704'131'669},
    {1, 2, 1, 1, 549'755'813'888},
    {1, 2, 3, 1, 137'438'953'472},
    {999, 1000, 720, 1, 534'997'003'061},
    {1, 1000, 3, 1, 1'100},
    {1, 1, 720, 1, 1'099'511'627'776},
    {9, 10, 0, 1, 1'099'511'627'776},
    {1, 2, 39, 1, 2},
    {1, 2, 40, 1, 1},
    {1, 2, 1'000'000, 1, 0},
};

TEST(FixedTest, LnIsExactToTheLastPlaces) {
  for (const LnVector& vector : kLnVectors) {
    const Fixed x = Fixed::from_ratio(vector.numerator, vector.denominator);
    EXPECT_LE(distance(ln(x).raw, vector.raw), kLastPlaces)
        << vector.numerator << "/" << vector.denominator;
  }
}

TEST(FixedTest, PowIsExactToTheLastPlaces) {
  for (const PowVector& vector : kPowVectors) {
    const Fixed power =
        pow_unit(Fixed::from_ratio(vector.base_numerator, vector.base_denominator),
                 Fixed::from_ratio(vector.exponent_numerator, vector.exponent_denominator));
    EXPECT_LE(distance(power.raw, vector.raw), kLastPlaces)
        << vector.base_numerator << "/" << vector.base_denominator << " ^ "
        << vector.exponent_numerator;
  }
}

TEST(FixedTest, LnOfTheSmallestAndTheLargest) {
  EXPECT_LE(distance(ln(Fixed{1}).raw, -40 * kLnVectors[1].raw), 40);
  EXPECT_LE(
      distance(ln(Fixed{std::numeric_limits<std::int64_t>::max()}).raw, 23 * kLnVectors[1].raw),
      23);
}

TEST(FixedTest, LnRisesAndPowFalls) {
  Prng random(1);
  for (int i = 0; i < 10'000; ++i) {
    const Fixed x{random.between(1, std::numeric_limits<std::int64_t>::max() - 1)};
    EXPECT_LE(ln(x), ln(Fixed{x.raw + 1}));
    const Fixed base{random.between(1, Fixed::from_int(1).raw)};
    const Fixed exponent{random.between(0, Fixed::from_int(800).raw)};
    const Fixed later{exponent.raw + (std::int64_t{1} << 30)};
    EXPECT_GE(pow_unit(base, exponent), pow_unit(base, later));
    EXPECT_LE(pow_unit(base, exponent), Fixed::from_int(1));
    EXPECT_GE(pow_unit(base, exponent), Fixed{});
  }
}

TEST(FixedTest, RatiosAndProductsRoundHalfAwayFromZero) {
  EXPECT_EQ(Fixed::from_ratio(1, 3).raw, 366'503'875'925);
  EXPECT_EQ(Fixed::from_ratio(2, 3).raw, 733'007'751'851);
  EXPECT_EQ(Fixed::from_ratio(-2, 3).raw, -733'007'751'851);
  const Fixed half = Fixed::from_ratio(1, 2);
  EXPECT_EQ((Fixed{1} * half).raw, 1);
  EXPECT_EQ((Fixed{-1} * half).raw, -1);
  EXPECT_EQ((Fixed::from_int(6) * Fixed::from_int(-7)), Fixed::from_int(-42));
  EXPECT_EQ(Fixed::from_int(6) - Fixed::from_int(7), Fixed::from_int(-1));
}

TEST(FixedDeathTest, WhatHasNoValueStopsTheProcess) {
  EXPECT_DEATH(ln(Fixed{}), "not positive");
  EXPECT_DEATH(Fixed::from_int(1 << 23), "overflows");
  EXPECT_DEATH(pow_unit(Fixed::from_int(2), Fixed{}), "above 1");
  EXPECT_DEATH(pow_unit(Fixed::from_ratio(1, 2), Fixed{-1}), "negative");
  EXPECT_DEATH(Fixed::from_int(4'000'000) * Fixed::from_int(3), "overflows");
  EXPECT_DEATH(Fixed::from_int(8'000'000) + Fixed::from_int(8'000'000), "overflows");
}

}  // namespace
}  // namespace bmgpu
