#include "wire/units.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace bmgpu::wire {
namespace {

using ::bmgpu::milliseconds;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

template <typename T>
void expect_refused(const Result<T>& result, std::string_view text, std::string_view why) {
  ASSERT_FALSE(result.ok()) << text;
  EXPECT_EQ(result.error().code, ErrorCode::InvalidArgument) << text;
  EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
}

TEST(UnitsTest, ParsesSizes) {
  EXPECT_EQ(*parse_size("40G"), 40 * kGiB);
  EXPECT_EQ(*parse_size("40GiB"), 40 * kGiB);
  EXPECT_EQ(*parse_size("40GB"), 40'000'000'000);
  EXPECT_EQ(*parse_size("512MiB"), 512 * (kGiB >> 10));
  EXPECT_EQ(*parse_size("1.5T"), 1536 * kGiB);
  EXPECT_EQ(*parse_size("1B"), 1);
  EXPECT_EQ(*parse_size("0.5K"), 512);
  EXPECT_EQ(*parse_size("8388607T"), 8388607 * (kGiB << 10));
  EXPECT_EQ(*parse_size_mib("40G"), 40960);
  EXPECT_EQ(*parse_size_mib("1B"), 1);
}

TEST(UnitsTest, RefusesSizesAndSaysWhatIsAccepted) {
  expect_refused(parse_size("40X"), "40X", "unknown unit");
  expect_refused(parse_size("40X"), "40X", "like 40G, 512MiB");
  expect_refused(parse_size("40"), "40", "has no unit");
  expect_refused(parse_size("0G"), "0G", "is zero");
  expect_refused(parse_size("-1G"), "-1G", "negative");
  expect_refused(parse_size("8388608T"), "8388608T", "too large");
  expect_refused(parse_size("0.5B"), "0.5B", "whole number of bytes");
  for (const char* text : {"", "G", " 40G", "40 G", "40G ", "4O0G", "+4G", "1.G", ".5G", "1.2345G",
                           "1e3G", "40g", "40gb", "0x10G", "1,5G", "NaN", "9999999999999999999G"}) {
    expect_refused(parse_size(text), text, "write a number and a unit");
  }
}

TEST(UnitsTest, PrintsSizesThatParseBack) {
  EXPECT_EQ(print_size(40 * kGiB), "40GiB");
  EXPECT_EQ(print_size(0), "0B");
  EXPECT_EQ(print_size(1025), "1025B");
  EXPECT_EQ(print_size_short(46068 * (kGiB >> 10)), "45.0 GiB");
  EXPECT_EQ(print_size_short(999), "999 B");
  Prng prng(1);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t bytes = prng.between(1, std::int64_t{1} << prng.between(1, 62));
    EXPECT_EQ(*parse_size(print_size(bytes)), bytes);
  }
}

TEST(UnitsTest, ParsesDurations) {
  EXPECT_EQ(*parse_duration("2h"), hours(2));
  EXPECT_EQ(*parse_duration("90m"), minutes(90));
  EXPECT_EQ(*parse_duration("1h30m"), minutes(90));
  EXPECT_EQ(*parse_duration("1d12h"), hours(36));
  EXPECT_EQ(*parse_duration("1s500ms"), milliseconds(1500));
  EXPECT_EQ(*parse_duration("36500d"), hours(24 * 36500));
}

TEST(UnitsTest, RefusesDurationsAndSaysWhatIsAccepted) {
  expect_refused(parse_duration("2"), "2", "has no unit");
  expect_refused(parse_duration("2y"), "2y", "unknown or misplaced");
  expect_refused(parse_duration("30m1h"), "30m1h", "misplaced");
  expect_refused(parse_duration("1h1h"), "1h1h", "misplaced");
  expect_refused(parse_duration("0h"), "0h", "is zero");
  expect_refused(parse_duration("0h0m"), "0h0m", "is zero");
  expect_refused(parse_duration("-2h"), "-2h", "negative");
  expect_refused(parse_duration("36501d"), "36501d", "too long");
  expect_refused(parse_duration("99999999999999999d"), "huge", "too long");
  for (const char* text : {"", "h", " 2h", "2h ", "2 h", "1.5h", "+2h", "2H", "1h30", "forever",
                           "9999999999999999999h"}) {
    expect_refused(parse_duration(text), text, "write whole numbers");
  }
}

TEST(UnitsTest, PrintsDurationsThatParseBack) {
  EXPECT_EQ(print_duration(minutes(90)), "1h30m");
  EXPECT_EQ(print_duration(Duration()), "0s");
  EXPECT_EQ(print_duration(seconds(-90)), "-1m30s");
  Prng prng(2);
  for (int i = 0; i < 1000; ++i) {
    const Duration span = milliseconds(prng.between(1, std::int64_t{1} << prng.between(1, 41)));
    EXPECT_EQ(*parse_duration(print_duration(span)), span);
  }
}

TEST(UnitsTest, ParsesMoneyExactly) {
  EXPECT_EQ(*parse_money("1.25"), Money(1'250'000));
  EXPECT_EQ(*parse_money("0.000001"), Money(1));
  EXPECT_EQ(*parse_money("7"), Money(7'000'000));
  EXPECT_EQ(*parse_money("0.1"), Money(100'000));
  EXPECT_EQ(*parse_money("1000000000000"), Money(1'000'000'000'000'000'000));
}

TEST(UnitsTest, RefusesMoneyAndSaysWhatIsAccepted) {
  expect_refused(parse_money("0"), "0", "is zero");
  expect_refused(parse_money("0.00"), "0.00", "is zero");
  expect_refused(parse_money("-1"), "-1", "negative");
  expect_refused(parse_money("1000000000000.000001"), "large", "too large");
  for (const char* text : {"", ".5", "1.", "1.2.3", "1,25", "$1", "1 EUR", "1e6", "0.0000001", "+1",
                           " 1", "9999999999999999999"}) {
    expect_refused(parse_money(text), text, "write an amount");
  }
}

TEST(UnitsTest, PrintsMoneyThatParsesBack) {
  EXPECT_EQ(print_money(Money(1'250'000)), "1.25");
  EXPECT_EQ(print_money(Money(1)), "0.000001");
  EXPECT_EQ(print_money(Money(7'000'000)), "7.00");
  EXPECT_EQ(print_money(Money(-100'000)), "-0.10");
  EXPECT_EQ(print_money(Money()), "0.00");
  Prng prng(3);
  for (int i = 0; i < 1000; ++i) {
    const Money amount(prng.between(1, std::int64_t{1} << prng.between(1, 59)));
    EXPECT_EQ(*parse_money(print_money(amount)), amount);
  }
}

TEST(UnitsTest, ParsesCountsInTheirRange) {
  EXPECT_EQ(*parse_count("2", "GPUs", 1, 64), 2);
  EXPECT_EQ(*parse_count("64", "GPUs", 1, 64), 64);
  for (const char* text : {"", "0", "65", "-1", "2.0", "two", "99999999999999999999"}) {
    expect_refused(parse_count(text, "GPUs", 1, 64), text, "from 1 to 64");
  }
}

TEST(UnitsTest, ShowsLongInputCut) {
  EXPECT_LT(parse_size(std::string(1'000'000, '4')).error().message.size(), 400U);
}

}  // namespace
}  // namespace bmgpu::wire
