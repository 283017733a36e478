#include "base/money.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/prng.h"

namespace bmgpu {
namespace {

TEST(MoneyTest, AChargeRoundsUpOnce) {
  EXPECT_EQ(charge(Price(75'000), kSlot), Money(75'000));
  EXPECT_EQ(charge(Price(1), milliseconds(1)), Money(1));
  EXPECT_EQ(charge(Price(900'000), milliseconds(1)), Money(1));
  EXPECT_EQ(charge(Price(900'001), milliseconds(1)), Money(2));
  EXPECT_EQ(charge(Price(0), hours(1)), Money(0));
  EXPECT_EQ(charge(Price(5), milliseconds(0)), Money(0));
}

TEST(MoneyTest, ALargeChargeIsExact) {
  EXPECT_EQ(charge(Price(250'000'000'000), hours(24 * 30)), Money(720'000'000'000'000));
}

TEST(MoneyDeathTest, WhatDoesNotFitStopsTheProcess) {
  EXPECT_DEATH(charge(Price::max(), hours(1)), "overflows");
  EXPECT_DEATH(charge(Price(-1), hours(1)), "negative");
  EXPECT_DEATH(charge(Price(1), hours(-1)), "negative");
  EXPECT_DEATH(Money::max() + Money(1), "overflows");
}

TEST(TimeTest, SlotsAreQuarterHoursAlsoBefore1970) {
  EXPECT_EQ(slot_of(Instant(0)), SlotNumber(0));
  EXPECT_EQ(slot_of(Instant(899'999)), SlotNumber(0));
  EXPECT_EQ(slot_of(Instant(900'000)), SlotNumber(1));
  EXPECT_EQ(slot_of(Instant(-1)), SlotNumber(-1));
  EXPECT_EQ(slot_of(Instant(-900'000)), SlotNumber(-1));
  EXPECT_EQ(slot_start(SlotNumber(2)), Instant(1'800'000));
}

TEST(DigestTest, SaysWhereTextEnds) {
  Digest one;
  one.add("a");
  one.add("bc");
  Digest other;
  other.add("ab");
  other.add("c");
  EXPECT_NE(one.value(), other.value());
}

TEST(PrngTest, DrawsTheSameNumbersEverywhere) {
  Prng random(42);
  EXPECT_EQ(random.next(), 13'679'457'532'755'275'413U);
  Prng again(7);
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t draw = again.between(-3, 3);
    EXPECT_GE(draw, -3);
    EXPECT_LE(draw, 3);
  }
}

}  // namespace
}  // namespace bmgpu
