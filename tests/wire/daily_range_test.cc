// Ranges of hours, among others over every zone of the database from 1970 to the end of 2037.
#include "wire/daily_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "wire/human_time.h"

namespace bmgpu::wire {
namespace {

using testing::HasSubstr;

const TimeZone kBerlin = TimeZone::find("Europe/Berlin").value();
const Instant kEnd = kTimeMax;

DailyRange range(std::string_view text, const TimeZone& zone = kBerlin) {
  return parse_daily_range(text, zone).value();
}
Instant at(const std::string& text) { return parse_time(text, Instant(), kBerlin).value().at; }

std::string shown(const std::vector<DailyRange>& ranges, const std::string& from,
                  const std::string& until) {
  std::string text;
  for (const Interval& interval : intervals_of(ranges, at(from), at(until))) {
    text += (text.empty() ? "" : ", ") + print_time(interval.from, kBerlin) + " - " +
            print_time(interval.until, kBerlin);
  }
  return text;
}

TEST(DailyRangeTest, CrossesMidnight) {
  EXPECT_EQ(shown({range("22:00..06:00")}, "2026-12-01 12:00", "2026-12-03 12:00"),
            "2026-12-01 22:00 CET - 2026-12-02 06:00 CET, "
            "2026-12-02 22:00 CET - 2026-12-03 06:00 CET");
  EXPECT_EQ(shown({range("22:00..06:00")}, "2026-12-01 03:00", "2026-12-01 23:00"),
            "2026-12-01 03:00 CET - 2026-12-01 06:00 CET, "
            "2026-12-01 22:00 CET - 2026-12-01 23:00 CET");
}

TEST(DailyRangeTest, DaysAreThoseOnWhichItBegins) {
  EXPECT_EQ(shown({range("fri 20:00..08:00"), range("sat,sun 00:00..24:00")}, "2026-12-03 12:00",
                  "2026-12-10 12:00"),
            "2026-12-04 20:00 CET - 2026-12-07 00:00 CET");
  EXPECT_EQ(range("sat-mon 00:00..01:00").days, range("sat,sun,mon 00:00..01:00").days);
}

TEST(DailyRangeTest, BoundsFallOnceADayWhenClocksChange) {
  EXPECT_EQ(shown({range("02:30..06:00")}, "2026-03-28 12:00", "2026-03-29 12:00"),
            "2026-03-29 03:00 CEST - 2026-03-29 06:00 CEST");
  EXPECT_EQ(shown({range("22:00..02:30")}, "2026-03-28 12:00", "2026-03-29 12:00"),
            "2026-03-28 22:00 CET - 2026-03-29 03:00 CEST");
  EXPECT_EQ(shown({range("02:30..06:00")}, "2026-10-24 12:00", "2026-10-25 12:00"),
            "2026-10-25 02:30 CEST - 2026-10-25 06:00 CET");
  EXPECT_EQ(shown({range("02:10..02:20")}, "2026-03-28 12:00", "2026-03-29 12:00"), "");
}

TEST(DailyRangeTest, ZoneAndNormalForm) {
  EXPECT_EQ(print(range("22:00..06:00")), "22:00..06:00 Europe/Berlin");
  EXPECT_EQ(print(range("mon-wed 00:00..24:00 +05:30")), "mon,tue,wed 00:00..24:00 +05:30");
  EXPECT_EQ(print(range("20:00..00:00 UTC")), "20:00..24:00 UTC");
  for (const char* text : {"22:00..06:00 Asia/Tokyo", "sat,sun 00:00..24:00", "08:15..08:30"}) {
    EXPECT_EQ(range(print(range(text)), TimeZone::utc()), range(text)) << text;
  }
}

TEST(DailyRangeTest, RefusesEverythingElseAndSaysWhatIsAccepted) {
  for (const char* text : {"",
                           "22:00",
                           "22:00-06:00",
                           "22:00..",
                           "..06:00",
                           "22..06",
                           "24:00..06:00",
                           "22:00..25:00",
                           "08:00..08:00",
                           "00:00..00:00x",
                           "mon",
                           "mon 22:00",
                           "mo 22:00..06:00",
                           "22:00..06:00 ",
                           " 22:00..06:00",
                           "mon- 22:00..06:00",
                           "mon-tue-wed 22:00..06:00",
                           ", 22:00..06:00",
                           "22:00..06:00 Europe/Berln",
                           "22:00..06:00 UTC UTC",
                           "mon mon 22:00..06:00"}) {
    const auto parsed = parse_daily_range(text, kBerlin);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr("write hours such as 22:00..06:00")) << text;
  }
}

// A range of whole quarter hours, and the one that is the rest of the day.
std::pair<DailyRange, DailyRange> random_pair(Prng& prng, const TimeZone& zone) {
  constexpr std::uint64_t kQuarters = 96;
  const std::uint64_t from = prng.below(kQuarters);
  const std::uint64_t until = (from + 1 + prng.below(kQuarters - 1)) % kQuarters;
  const auto make = [&](std::uint64_t first, std::uint64_t last) {
    return DailyRange{DailyRange::kEveryDay, kSlot * static_cast<std::int64_t>(first),
                      kSlot * static_cast<std::int64_t>(last == 0 ? kQuarters : last), zone};
  };
  return {make(from, until), make(until, from)};
}

void expect_sorted_and_disjoint(const std::vector<Interval>& intervals, const std::string& what) {
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    ASSERT_LT(intervals[i].from, intervals[i].until) << what;
    if (i > 0) {
      ASSERT_LT(intervals[i - 1].until, intervals[i].from) << what;
    }
  }
}

// Each UTC quarter hour lies in the range or in the rest of the day, never in both, never in
// neither (where zones were minutes and seconds off, each part of it): the two lists follow each
// other without gap or overlap from the first instant to the last.
void expect_tiling(const std::vector<Interval>& in, const std::vector<Interval>& rest,
                   const std::string& what) {
  std::size_t i = 0;
  std::size_t j = 0;
  Instant reached;
  while (reached < kEnd) {
    const bool is_in = i < in.size() && in[i].from == reached;
    const bool is_rest = j < rest.size() && rest[j].from == reached;
    ASSERT_NE(is_in, is_rest) << what << " at " << print_time(reached, TimeZone::utc());
    reached = is_in ? in[i++].until : rest[j++].until;
  }
  ASSERT_EQ(reached, kEnd) << what;
  ASSERT_TRUE(i == in.size() && j == rest.size()) << what;
}

// On days without a change of clocks nearby, hours are what the clock shows.
void expect_what_the_clock_shows(const DailyRange& hours_of_day, const std::vector<Interval>& in,
                                 Prng& prng) {
  for (int sample = 0; sample < 200; ++sample) {
    const Instant instant = slot_start(SlotNumber(
        static_cast<std::int64_t>(prng.below(static_cast<std::uint64_t>(slot_of(kEnd).count())))));
    const TimeZone::Period period = hours_of_day.zone.period_at(instant);
    if (instant - hours(50) < period.begin || period.end < instant + hours(50)) {
      continue;
    }
    const std::int64_t shown_ms = wall_time(instant, hours_of_day.zone).count();
    const Duration clock(((shown_ms % hours(24).count()) + hours(24).count()) % hours(24).count());
    const bool wraps = hours_of_day.until <= hours_of_day.from;
    const bool expected = wraps ? clock >= hours_of_day.from || clock < hours_of_day.until
                                : clock >= hours_of_day.from && clock < hours_of_day.until;
    const auto after = std::upper_bound(in.begin(), in.end(), Interval{instant, kEnd});
    const bool found = after != in.begin() && instant < std::prev(after)->until;
    ASSERT_EQ(found, expected) << print(hours_of_day) << " at "
                               << print_time(instant, hours_of_day.zone);
  }
}

TEST(DailyRangeTest, TilesEveryDayOfEveryZoneFrom1970To2038) {
  Prng prng(3);
  const std::vector<std::string> names = TimeZone::names();
  ASSERT_GT(names.size(), 400U);
  for (const std::string& name : names) {
    const TimeZone zone = TimeZone::find(name).value();
    const auto [chosen, rest] = random_pair(prng, zone);
    const std::vector<Interval> in = intervals_of({chosen}, Instant(), kEnd);
    const std::vector<Interval> out = intervals_of({rest}, Instant(), kEnd);
    expect_sorted_and_disjoint(in, print(chosen));
    expect_sorted_and_disjoint(out, print(rest));
    expect_tiling(in, out, print(chosen));
    expect_what_the_clock_shows(chosen, in, prng);
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace bmgpu::wire
