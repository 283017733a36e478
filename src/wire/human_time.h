// Points in time as people write them, read strictly.
//
//   time  := "+" duration                        +2h, +1h30m: from now
//          | [day " "] clock [offset] [" " zone] 22:30, sat 08:00, tomorrow 09:30
//          | date "T" clock offset               2026-12-01T08:00:00+01:00 (ISO 8601)
//   day   := "today" | "tomorrow" | mon … sun or in full | date
//   date  := YYYY-MM-DD
//   clock := HH:MM | HH:MM:SS | HH:MM:SS.mmm     00:00 to 23:59:59.999
//   offset := "Z" | ±HH:MM
//   zone  := a name such as Europe/Berlin, "UTC", or an offset
//
// A clock without a day, or with a weekday, is the next such time after now. A time that a clock
// never shows, because it is set forward over it, is an error that names the nearest two; of one
// that it shows twice the earlier is meant, and `note` says so. docs/reference/times.md is the
// manual. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "wire/time_zone.h"

namespace bmgpu::wire {

struct HumanTime {
  Instant at;
  TimeZone zone;     // in which it was written
  std::string note;  // "", or what was assumed, as a sentence for the one who wrote it

  bool operator==(const HumanTime&) const = default;
};

// `zone` is meant where the text names none. The result may lie before `now` if the text gives a
// date. From 1970 to the end of 2037; errors are InvalidArgument and say what is accepted.
Result<HumanTime> parse_time(std::string_view text, Instant now, const TimeZone& zone);

}  // namespace bmgpu::wire
