// The words that times and ranges are made of. Private to human_time.cc and daily_range.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "wire/time_zone.h"

namespace bmgpu::wire {

inline constexpr Duration kDay = hours(24);

// Parts of `text` between single separators; parts may be empty.
std::vector<std::string_view> split(std::string_view text, char separator);

// Takes exactly `digits` digits off the front of `rest`.
std::optional<std::int64_t> take_digits(std::string_view& rest, std::size_t digits);
// Takes `text` off the front of `rest`.
bool take(std::string_view& rest, std::string_view text);

// HH:MM, HH:MM:SS or HH:MM:SS.mmm from the front of `rest`, as time since midnight.
std::optional<Duration> take_clock(std::string_view& rest);
// "Z", "+01:00": a whole word or the end of one.
std::optional<TimeZone> offset_of(std::string_view word);
// 0 = Monday. "sat", "Saturday".
std::optional<int> weekday_of(std::string_view word);
std::string_view weekday_name(int weekday);  // "mon"

// The number of the day, 1970-01-01 = 0, and its weekday.
std::int64_t day_of(WallTime time);
int weekday_of_day(std::int64_t day);
inline WallTime wall_time_on(std::int64_t day, Duration since_midnight) {
  return WallTime((kDay * day + since_midnight).count());
}
// "08:00", "08:00:30"
std::string clock_text(Duration since_midnight);

// What a person typed, cut and in quotes.
std::string quoted_text(std::string_view text);

}  // namespace bmgpu::wire
