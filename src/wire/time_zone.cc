#include "wire/time_zone.h"

#include <date/tz.h>

#include <algorithm>
#include <chrono>

#include "base/nearest.h"
#include "wire/time_words.h"

namespace bmgpu::wire {
namespace {

constexpr std::string_view kUtc = "UTC";

Instant to_instant(date::sys_seconds at) {
  // The ends of the database's first and last periods lie beyond what milliseconds can hold.
  constexpr std::int64_t kFar = 100'000'000'000;  // seconds
  return Instant(std::clamp(at.time_since_epoch().count(), -kFar, kFar) * 1000);
}

const date::time_zone* locate(std::string_view name) {
  try {
    return date::locate_zone(name);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

std::string offset_text(Duration offset) {
  if (offset == Duration()) {
    return std::string(kUtc);
  }
  return (offset < Duration() ? "-" : "+") + clock_text(std::max(offset, Duration() - offset));
}

// The periods that can show `time`: a clock is never more than a day and some from UTC.
std::vector<TimeZone::Period> periods_around(WallTime time, const TimeZone& zone) {
  const Instant near(time.count());
  std::vector<TimeZone::Period> periods{zone.period_at(near - kDay * 2)};
  while (periods.back().end <= near + kDay * 2) {
    periods.push_back(zone.period_at(periods.back().end));
  }
  return periods;
}

}  // namespace

Result<TimeZone> TimeZone::find(std::string_view name) {
  if (name == kUtc) {
    return utc();
  }
  TimeZone zone;
  zone.zone_ = locate(name);
  if (zone.zone_ == nullptr) {
    const std::string near = nearest(name, names());
    return Error{
        ErrorCode::InvalidArgument,
        "there is no time zone '" + std::string(name.substr(0, 40)) + "'" +
            (near.empty() ? "; write one such as Europe/Berlin, or an offset such as +01:00"
                          : "; did you mean " + near + "?")};
  }
  return zone;
}

Result<TimeZone> TimeZone::of_machine(const std::optional<std::string>& tz) {
  if (tz) {
    const std::string_view name =
        std::string_view(*tz).substr(tz->starts_with(':') ? 1 : 0);  // both mean the same
    Result<TimeZone> zone = name.empty() ? utc() : find(name);
    return zone ? zone
                : Error{ErrorCode::InvalidArgument,
                        "the variable TZ: " + zone.error().message +
                            "; set it to a name such as Europe/Berlin, or write the zone with the "
                            "time"};
  }
  try {
    return find(date::current_zone()->name());
  } catch (const std::runtime_error&) {
    return utc();  // as the C library does where nothing is configured
  }
}

TimeZone TimeZone::with_offset(Duration offset) {
  check(offset.count() % minutes(1).count() == 0 && offset < kDay && Duration() - kDay < offset,
        "time zone: an offset of whole minutes within a day");
  TimeZone zone;
  zone.offset_ = offset;
  return zone;
}

std::vector<std::string> TimeZone::names() {
  std::vector<std::string> all;
  for (const date::time_zone& zone : date::get_tzdb().zones) {
    if (zone.name() != "localtime") {  // a link of the system's, no name
      all.push_back(zone.name());
    }
  }
  return all;
}

std::string TimeZone::name() const {
  return zone_ != nullptr ? zone_->name() : offset_text(offset_);
}

TimeZone::Period TimeZone::period_at(Instant at) const {
  if (zone_ == nullptr) {
    return Period{Instant() - kDay * 1'000'000, Instant() + kDay * 1'000'000, offset_,
                  offset_text(offset_)};
  }
  const auto since =
      std::chrono::floor<std::chrono::seconds>(std::chrono::milliseconds(at.unix_ms()));
  const date::sys_info info = zone_->get_info(date::sys_seconds(since));
  return Period{to_instant(info.begin), to_instant(info.end), seconds(info.offset.count()),
                info.abbrev};
}

WallTime wall_time(Instant at, const TimeZone& zone) {
  return WallTime((at + zone.period_at(at).offset).unix_ms());
}

Instant first_shown(WallTime time, const TimeZone& zone) {
  for (const TimeZone::Period& period : periods_around(time, zone)) {
    const Instant at = std::max(Instant(time.count()) - period.offset, period.begin);
    if (at < period.end) {
      return at;
    }
  }
  check(false, "time zone: a clock that never gets there");
  return Instant();
}

std::vector<Instant> instants_of(WallTime time, const TimeZone& zone) {
  std::vector<Instant> instants;
  for (const TimeZone::Period& period : periods_around(time, zone)) {
    const Instant at = Instant(time.count()) - period.offset;
    if (period.begin <= at && at < period.end) {
      instants.push_back(at);
    }
  }
  return instants;
}

std::string print_date(WallTime time) {
  const date::year_month_day day{date::sys_days(date::days(day_of(time)))};
  const auto padded = [](unsigned number) {
    return (number < 10 ? "-0" : "-") + std::to_string(number);
  };
  return std::to_string(static_cast<int>(day.year())) + padded(static_cast<unsigned>(day.month())) +
         padded(static_cast<unsigned>(day.day()));
}

std::string print_time(Instant at, const TimeZone& zone) {
  const TimeZone::Period period = zone.period_at(at);
  const WallTime shown((at + period.offset).unix_ms());
  return print_date(shown) + " " + clock_text(Duration(shown.count()) - kDay * day_of(shown)) +
         " " + period.abbreviation;
}

}  // namespace bmgpu::wire
