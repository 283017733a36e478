// Time zones: what the clock on the wall shows at an instant, and when it shows a time.
//
// Zones come from the system's database (package tzdata), from 1970 to the end of 2037. The market
// itself knows only instants; zones exist where a person reads or writes a time. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "base/time.h"

namespace date {
class time_zone;
}

namespace bmgpu::wire {

// What a wall clock shows, date included: milliseconds since it showed 1970-01-01 00:00.
using WallTime = Quantity<struct WallTimeTag>;

// The first instant that is not understood any more: 2038-01-01T00:00:00Z.
inline constexpr Instant kTimeMax{2'145'916'800'000};

class TimeZone {
 public:
  // By its name in the database, "Europe/Berlin". InvalidArgument names the nearest one.
  static Result<TimeZone> find(std::string_view name);
  // The machine's: `tz` is the variable TZ, which must name a zone; without it that of
  // /etc/localtime, else UTC.
  static Result<TimeZone> of_machine(const std::optional<std::string>& tz);
  static TimeZone utc() { return with_offset(Duration()); }
  // A clock that is always `offset` ahead of UTC. REQUIRES: whole minutes, within a day.
  static TimeZone with_offset(Duration offset);
  static std::vector<std::string> names();

  // "Europe/Berlin", "UTC", "+05:30": find() or with_offset() give it again.
  std::string name() const;

  // While the clock keeps one distance from UTC: from `begin` on and before `end`.
  struct Period {
    Instant begin;
    Instant end;
    Duration offset;           // the clock is ahead of UTC by it
    std::string abbreviation;  // "CET"; of some zones a number, "+03"
  };
  Period period_at(Instant at) const;

  bool operator==(const TimeZone&) const = default;

 private:
  const date::time_zone* zone_ = nullptr;  // null: a constant offset
  Duration offset_;
};

WallTime wall_time(Instant at, const TimeZone& zone);

// The first instant at which the clock shows `time` or a later one. Of a time that comes twice it
// is the earlier, of one that is skipped the jump.
Instant first_shown(WallTime time, const TimeZone& zone);

// Every instant at which the clock shows `time`: one; two if it is set back over it; none if it is
// set forward over it.
std::vector<Instant> instants_of(WallTime time, const TimeZone& zone);

// "2026-12-01 08:00 CET", with seconds where they are not zero.
std::string print_time(Instant at, const TimeZone& zone);
// "2026-12-01"
std::string print_date(WallTime time);

}  // namespace bmgpu::wire
