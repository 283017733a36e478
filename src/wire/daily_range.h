// Hours of the day that come again: "22:00..06:00", "mon-fri 20:00..08:00 Europe/Berlin".
//
//   range := [days " "] HH:MM ".." HH:MM [" " zone]
//   days  := day | day "-" day, several joined by ","     on which it begins
//   zone  := a name such as Europe/Berlin, "UTC", or an offset such as +01:00
//
// An end that is not after the beginning lies on the next day; 24:00 may end a range. A bound falls
// on the first instant at which the clock shows that time or a later one: once a day, also on the
// days when clocks change. So ranges that tile a day tile every day. docs/reference/times.md is the
// manual. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/interval.h"
#include "base/result.h"
#include "base/time.h"
#include "wire/time_zone.h"

namespace bmgpu::wire {

struct DailyRange {
  unsigned days = kEveryDay;  // bit 0: Mondays
  Duration from;              // since midnight on the clock, before 24 h
  Duration until;             // above zero, at most 24 h; not above `from`: on the next day
  TimeZone zone;

  static constexpr unsigned kEveryDay = 0x7f;
  bool operator==(const DailyRange&) const = default;
};

// `zone` is meant where the text names none. Errors are InvalidArgument and say what is accepted.
Result<DailyRange> parse_daily_range(std::string_view text, const TimeZone& zone);

// The normal form, zone included; parse_daily_range() reads it.
std::string print(const DailyRange& range);

// The instants of [from, until) that lie in one of the ranges: sorted, disjoint and not touching.
// Cost: O(days × ranges).
std::vector<Interval> intervals_of(const std::vector<DailyRange>& ranges, Instant from,
                                   Instant until);

}  // namespace bmgpu::wire
