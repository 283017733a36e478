#include "wire/human_time.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "wire/time_words.h"
#include "wire/units.h"

namespace bmgpu::wire {
namespace {

constexpr std::string_view kAccepted =
    "write +2h, 22:30, tomorrow 09:30, sat 08:00, '2026-12-01 08:00' or 2026-12-01T08:00+01:00, "
    "with a zone such as Europe/Berlin or +01:00 after it where another than yours is meant";

Error refused(std::string_view text, const std::string& why) {
  return Error{ErrorCode::InvalidArgument,
               quoted_text(text) + " " + why + "; " + std::string(kAccepted)};
}

// On which days a clock time may lie.
enum class DayKind { Next, Weekday, Fixed };
struct Day {
  DayKind kind = DayKind::Next;
  int weekday = 0;
  std::int64_t number = 0;  // of a fixed day; of "today" and "tomorrow" relative to now
  bool relative = false;
};

// YYYY-MM-DD from the front of `rest`, as a day's number.
std::optional<std::int64_t> take_date(std::string_view& rest) {
  std::string_view ahead = rest;
  const auto year = take_digits(ahead, 4);
  const bool first = take(ahead, "-");
  const auto month = take_digits(ahead, 2);
  const bool second = take(ahead, "-");
  const auto day = take_digits(ahead, 2);
  if (!year || !first || !month || !second || !day) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) {
    return std::nullopt;
  }
  rest = ahead;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::optional<Day> day_word(std::string_view word) {
  if (word == "today" || word == "tomorrow") {
    return Day{DayKind::Fixed, 0, word == "today" ? 0 : 1, true};
  }
  if (const auto weekday = weekday_of(word)) {
    return Day{DayKind::Weekday, *weekday};
  }
  const auto date = take_date(word);
  return date && word.empty() ? std::optional(Day{DayKind::Fixed, 0, *date}) : std::nullopt;
}

// One text on its way to an instant.
class TimeReader {
 public:
  TimeReader(std::string_view text, Instant now, const TimeZone& zone)
      : text_(text), now_(now), zone_(zone) {}

  Result<HumanTime> read() {
    if (text_.starts_with('+')) {
      const Result<Duration> wait = parse_duration(text_.substr(1));
      return wait ? finish(now_ + *wait, "")
                  : refused(text_, "is no time from now: " + wait.error().message);
    }
    std::string_view iso = text_;
    if (const auto date = take_date(iso); date && take(iso, "T")) {
      return read_iso(*date, iso);
    }
    return read_words();
  }

 private:
  Result<HumanTime> finish(Instant at, std::string note) const {
    if (at < Instant() || at >= kTimeMax) {
      return refused(text_, "is outside of 1970 to 2037");
    }
    return HumanTime{at, zone_, std::move(note)};
  }

  Result<HumanTime> read_iso(std::int64_t date, std::string_view rest) {
    const auto clock = take_clock(rest);
    const auto offset = offset_of(rest);
    if (!clock || !offset) {
      return refused(text_, "is no time with its offset from UTC");
    }
    zone_ = *offset;
    return resolve(wall_time_on(date, *clock));
  }

  Result<HumanTime> read_words() {
    std::vector<std::string_view> words = split(text_, ' ');
    Day day;
    if (words.size() > 1) {
      if (const auto named = day_word(words.front())) {
        day = *named;
        words.erase(words.begin());
      }
    }
    const auto clock = take_clock(words[0]);
    if (!clock || words.size() > 2 || (!words[0].empty() && words.size() == 2)) {
      return refused(text_, "is no time");
    }
    const std::string_view zone = words.size() == 2 ? words[1] : words[0];
    if (zone.empty() && words.size() == 2) {
      return refused(text_, "is no time");
    }
    if (const auto offset = offset_of(zone)) {
      zone_ = *offset;
    } else if (words.size() == 2) {
      const Result<TimeZone> named = TimeZone::find(zone);
      if (!named) {
        return refused(text_, "is no time: " + named.error().message);
      }
      zone_ = *named;
    } else if (!zone.empty()) {
      return refused(text_, "is no time");
    }
    return day.kind == DayKind::Fixed ? on_day(day, *clock) : next(day, *clock);
  }

  Result<HumanTime> on_day(const Day& day, Duration clock) const {
    const std::int64_t today = day.relative ? day_of(wall_time(now_, zone_)) : 0;
    return resolve(wall_time_on(today + day.number, clock));
  }

  // The first one after now. A day on which clocks skip the time counts: better an error than a
  // job that starts a day late.
  Result<HumanTime> next(const Day& day, Duration clock) const {
    constexpr std::int64_t kAhead = 8;
    const std::int64_t today = day_of(wall_time(now_, zone_));
    for (std::int64_t number = today; number <= today + kAhead; ++number) {
      if (day.kind == DayKind::Weekday && weekday_of_day(number) != day.weekday) {
        continue;
      }
      const WallTime wall = wall_time_on(number, clock);
      const std::vector<Instant> instants = instants_of(wall, zone_);
      if (instants.empty() ? first_shown(wall, zone_) > now_ : instants.back() > now_) {
        return resolve(wall);
      }
    }
    return refused(text_, "does not come within a week");
  }

  // Where the clock shows `wall`; of two instants the earlier that a person can still mean.
  Result<HumanTime> resolve(WallTime wall) const {
    const std::vector<Instant> instants = instants_of(wall, zone_);
    if (instants.empty()) {
      return skipped(wall);
    }
    if (instants.size() == 1) {
      return finish(instants[0], "");
    }
    const bool is_past = instants[0] <= now_ && instants[1] > now_;
    const Instant at = instants[is_past ? 1 : 0];
    const Instant other = instants[is_past ? 0 : 1];
    return finish(at, clock_text(Duration(wall.count() - day_of(wall) * kDay.count())) +
                          " comes twice on " + print_date(wall) + " in " + zone_.name() +
                          "; it is read as " + print_time(at, zone_) + ", the " +
                          (is_past ? "one still to come" : "earlier") + ", not " +
                          print_time(other, zone_) +
                          ": write an offset, such as +01:00, to choose");
  }

  Error skipped(WallTime wall) const {
    const Instant jump = first_shown(wall, zone_);
    return refused(text_,
                   "is a time that no clock in " + zone_.name() + " shows on " + print_date(wall) +
                       ", because clocks are set forward then; the nearest are " +
                       print_time(jump - minutes(1), zone_) + " and " + print_time(jump, zone_));
  }

  std::string_view text_;
  Instant now_;
  TimeZone zone_;
};

}  // namespace

Result<HumanTime> parse_time(std::string_view text, Instant now, const TimeZone& zone) {
  return TimeReader(text, now, zone).read();
}

}  // namespace bmgpu::wire
