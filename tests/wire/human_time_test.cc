#include "wire/human_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bmgpu::wire {
namespace {

using testing::HasSubstr;

TimeZone zone(std::string_view name) { return TimeZone::find(name).value(); }
const TimeZone kBerlin = zone("Europe/Berlin");

// An instant written the one way that needs no reading: ISO 8601 in UTC.
Instant utc(const std::string& text) {
  return parse_time(text + "Z", Instant(), TimeZone::utc()).value().at;
}
const Instant kNow = utc("2026-11-30T21:00:00");  // a Monday, 22:00 in Berlin

std::string read(std::string_view text, Instant now = kNow, const TimeZone& in = kBerlin) {
  const Result<HumanTime> time = parse_time(text, now, in);
  return time ? print_time(time->at, in) : "error: " + time.error().message;
}
std::string refusal(std::string_view text, Instant now = kNow, const TimeZone& in = kBerlin) {
  const Result<HumanTime> time = parse_time(text, now, in);
  EXPECT_FALSE(time.ok()) << text;
  EXPECT_TRUE(time.ok() || time.error().code == ErrorCode::InvalidArgument);
  return time ? "" : time.error().message;
}

TEST(HumanTimeTest, KnowsTheEpoch) {
  EXPECT_EQ(utc("1970-01-01T00:00:00"), Instant());
  EXPECT_EQ(utc("2026-11-30T21:00:00.250").unix_ms(), 1'796'072'400'250);
}

TEST(HumanTimeTest, ReadsWhatIsDocumented) {
  EXPECT_EQ(read("+2h"), "2026-12-01 00:00 CET");
  EXPECT_EQ(read("+90m"), "2026-11-30 23:30 CET");
  EXPECT_EQ(read("22:30"), "2026-11-30 22:30 CET");
  EXPECT_EQ(read("today 23:00"), "2026-11-30 23:00 CET");
  EXPECT_EQ(read("today 08:00"), "2026-11-30 08:00 CET");  // the caller decides about the past
  EXPECT_EQ(read("tomorrow 09:30"), "2026-12-01 09:30 CET");
  EXPECT_EQ(read("sat 08:00"), "2026-12-05 08:00 CET");
  EXPECT_EQ(read("Saturday 08:00"), "2026-12-05 08:00 CET");
  EXPECT_EQ(read("2026-12-01 08:00"), "2026-12-01 08:00 CET");
  EXPECT_EQ(read("2026-12-01 08:00:30"), "2026-12-01 08:00:30 CET");
  EXPECT_EQ(read("2026-12-01 08:00 America/New_York"), "2026-12-01 14:00 CET");
  EXPECT_EQ(read("2026-12-01 08:00 UTC"), "2026-12-01 09:00 CET");
  EXPECT_EQ(read("2026-12-01 08:00+05:30"), "2026-12-01 03:30 CET");
  EXPECT_EQ(read("2026-12-01 08:00 +05:30"), "2026-12-01 03:30 CET");
  EXPECT_EQ(read("2026-12-01T08:00Z"), "2026-12-01 09:00 CET");
  EXPECT_EQ(read("2026-12-01T08:00:00-08:00"), "2026-12-01 17:00 CET");
  EXPECT_EQ(read("08:00 Asia/Tokyo"), "2026-12-01 00:00 CET");
}

TEST(HumanTimeTest, AClockWithoutADateIsTheNextOne) {
  EXPECT_EQ(read("22:00"), "2026-12-01 22:00 CET");  // it is 22:00 now
  EXPECT_EQ(read("mon 22:00"), "2026-12-07 22:00 CET");
  EXPECT_EQ(read("mon 22:01"), "2026-11-30 22:01 CET");
  EXPECT_EQ(read("tomorrow 00:30 Asia/Tokyo"), "2026-12-01 16:30 CET");  // it is Tuesday there
}

TEST(HumanTimeTest, ATimeThatIsSkippedNamesTheNearestTwo) {
  const std::string why = refusal("2026-03-29 02:30");
  EXPECT_THAT(why, HasSubstr("2026-03-29 01:59 CET"));
  EXPECT_THAT(why, HasSubstr("2026-03-29 03:00 CEST"));
  EXPECT_EQ(read("2026-03-29 01:59"), "2026-03-29 01:59 CET");
  EXPECT_EQ(read("2026-03-29 03:00"), "2026-03-29 03:00 CEST");
  EXPECT_EQ(read("2026-03-29 02:30+01:00"), "2026-03-29 03:30 CEST");
  // The next 02:30 would be that of the skipped hour: an error, not a day later.
  EXPECT_THAT(refusal("02:30", utc("2026-03-28T23:30:00")), HasSubstr("03:00 CEST"));
  EXPECT_THAT(refusal("sun 02:30", utc("2026-03-27T12:00:00")), HasSubstr("03:00 CEST"));
  EXPECT_EQ(read("02:30", utc("2026-03-29T01:00:00")), "2026-03-30 02:30 CEST");
  EXPECT_THAT(refusal("2011-12-30 12:00 Pacific/Apia"), HasSubstr("2011-12-31 00:00 +14"));
}

TEST(HumanTimeTest, OfATimeThatComesTwiceTheEarlierIsMeantAndSaidSo) {
  const HumanTime twice = parse_time("2026-10-25 02:30", kNow, kBerlin).value();
  EXPECT_EQ(twice.at, utc("2026-10-25T00:30:00"));
  EXPECT_THAT(twice.note, HasSubstr("02:30 comes twice on 2026-10-25 in Europe/Berlin"));
  EXPECT_THAT(twice.note, HasSubstr("read as 2026-10-25 02:30 CEST"));
  EXPECT_EQ(parse_time("2026-10-25 02:30+01:00", kNow, kBerlin).value().at,
            utc("2026-10-25T01:30:00"));
  EXPECT_EQ(parse_time("2026-10-25 03:00", kNow, kBerlin).value().note, "");
  // Between the two, the next one is the later.
  const HumanTime later = parse_time("02:30", utc("2026-10-25T00:40:00"), kBerlin).value();
  EXPECT_EQ(later.at, utc("2026-10-25T01:30:00"));
  EXPECT_THAT(later.note, HasSubstr("the one still to come"));
}

TEST(HumanTimeTest, RefusesEverythingElseAndSaysWhatIsAccepted) {
  for (const char* text : {"",
                           " ",
                           "2h",
                           "+",
                           "+2",
                           "+0h",
                           "-2h",
                           "now",
                           "8:00",
                           "08:0",
                           "08:60",
                           "24:00",
                           "08.00",
                           "08:00 ",
                           " 08:00",
                           "08:00  UTC",
                           "sat",
                           "sat  08:00",
                           "saturd 08:00",
                           "Sat 08:00 UTC x",
                           "2026-12-01",
                           "2026-13-01 08:00",
                           "2026-02-29 08:00",
                           "26-12-01 08:00",
                           "2026-12-1 08:00",
                           "2026-12-01T08:00",
                           "2026-12-01T08:00 UTC",
                           "2026-12-01t08:00Z",
                           "2026-12-01T08:00z",
                           "2026-12-01 08:00 Europe/Berln",
                           "2026-12-01 08:00+24:00",
                           "2026-12-01 08:00+1",
                           "2026-12-01 08:00Z UTC",
                           "1969-12-31 08:00 UTC",
                           "2038-01-01 00:00 UTC",
                           "+36500d",
                           "08:00:00.5",
                           "08:00:61",
                           "+2h UTC",
                           "tomorrow",
                           "tomorrow +2h",
                           "08:00..09:00"}) {
    EXPECT_THAT(refusal(text), HasSubstr("write +2h, 22:30, tomorrow 09:30")) << text;
  }
  EXPECT_THAT(refusal("2026-12-01 08:00 Europe/Berln"), HasSubstr("Europe/Berlin"));
}

TEST(TimeZoneTest, ComesFromTheMachine) {
  EXPECT_EQ(TimeZone::of_machine("Europe/Berlin").value(), kBerlin);
  EXPECT_EQ(TimeZone::of_machine(":Asia/Tokyo").value().name(), "Asia/Tokyo");
  EXPECT_EQ(TimeZone::of_machine("").value(), TimeZone::utc());
  EXPECT_TRUE(TimeZone::of_machine(std::nullopt).ok());
  const Result<TimeZone> posix = TimeZone::of_machine("CET-1CEST");
  ASSERT_FALSE(posix.ok());
  EXPECT_THAT(posix.error().message, HasSubstr("the variable TZ"));
}

TEST(TimeZoneTest, NoPathIsAZone) {
  for (const char* name :
       {"../../etc/passwd", "/etc/localtime", "", "Europe/Berlin\n", "localtim"}) {
    EXPECT_FALSE(TimeZone::find(name).ok()) << name;
  }
  EXPECT_EQ(TimeZone::with_offset(minutes(-210)).name(), "-03:30");
}

}  // namespace
}  // namespace bmgpu::wire
