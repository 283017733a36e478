#include "wire/daily_range.h"

#include <algorithm>
#include <optional>

#include "wire/time_words.h"

namespace bmgpu::wire {
namespace {

constexpr std::string_view kAccepted =
    "write hours such as 22:00..06:00, with days before them (mon-fri 20:00..08:00, sat,sun "
    "00:00..24:00) or a zone after them (22:00..06:00 Europe/Berlin) where you need it";

Error refused(std::string_view text, std::string_view why) {
  return Error{ErrorCode::InvalidArgument,
               quoted_text(text) + " " + std::string(why) + "; " + std::string(kAccepted)};
}

// "mon-fri,sun" as bits; nothing if it is none.
std::optional<unsigned> days_of(std::string_view word) {
  unsigned days = 0;
  for (const std::string_view part : split(word, ',')) {
    const std::vector<std::string_view> ends = split(part, '-');
    const auto first = weekday_of(ends.front());
    const auto last = weekday_of(ends.back());
    if (!first || !last || ends.size() > 2) {
      return std::nullopt;
    }
    for (int day = *first;; day = (day + 1) % 7) {
      days |= 1U << day;
      if (day == *last) {
        break;
      }
    }
  }
  return days;
}

std::optional<Duration> bound_of(std::string_view word) {
  const auto clock = take_clock(word);
  return clock && word.empty() ? clock : std::nullopt;
}

std::string days_text(unsigned days) {
  std::string text;
  for (int day = 0; day < 7; ++day) {
    if ((days >> day & 1U) != 0) {
      text += (text.empty() ? "" : ",") + std::string(weekday_name(day));
    }
  }
  return text + " ";
}

// first_shown() for many times in a row: far from a change of clocks the last period answers.
class BoundFinder {
 public:
  explicit BoundFinder(const TimeZone& zone) : zone_(zone), period_(zone.period_at(Instant())) {}

  Instant first_shown(WallTime time) {
    constexpr Duration kJumpMax = hours(48);  // a clock jumps by a day at most
    const Instant at = Instant(time.count()) - period_.offset;
    if (period_.begin + kJumpMax <= at && at < period_.end - kJumpMax) {
      return at;
    }
    const Instant found = wire::first_shown(time, zone_);
    period_ = zone_.period_at(found);
    return found;
  }

 private:
  const TimeZone& zone_;
  TimeZone::Period period_;
};

// `all` sorted; what overlaps or touches becomes one.
std::vector<Interval> merged(const std::vector<Interval>& all) {
  std::vector<Interval> intervals;
  for (const Interval& next : all) {
    if (!intervals.empty() && next.from <= intervals.back().until) {
      intervals.back().until = std::max(intervals.back().until, next.until);
    } else {
      intervals.push_back(next);
    }
  }
  return intervals;
}

}  // namespace

Result<DailyRange> parse_daily_range(std::string_view text, const TimeZone& zone) {
  std::vector<std::string_view> words = split(text, ' ');
  DailyRange range;
  range.zone = zone;
  if (const auto days = words.size() > 1 ? days_of(words.front()) : std::nullopt) {
    range.days = *days;
    words.erase(words.begin());
  }
  if (words.size() > 2) {
    return refused(text, "is no daily range");
  }
  if (words.size() == 2) {
    const auto offset = offset_of(words[1]);
    Result<TimeZone> named = offset ? Result<TimeZone>(*offset) : TimeZone::find(words[1]);
    if (!named) {
      return refused(text, "is no daily range: " + named.error().message);
    }
    range.zone = *named;
  }
  const std::size_t dots = words[0].find("..");
  if (dots == std::string_view::npos) {
    return refused(text, "is no daily range");
  }
  const std::string_view end = words[0].substr(dots + 2);
  const auto from = bound_of(words[0].substr(0, dots));
  const auto until = end == "24:00" ? std::optional(kDay) : bound_of(end);
  if (!from || !until) {
    return refused(text, "is no daily range: times are 00:00 to 23:59, and 24:00 as an end");
  }
  if (*from == *until) {
    return refused(text, "is an empty range");
  }
  range.from = *from;
  range.until = *until == Duration() ? kDay : *until;  // midnight ends the day that it follows
  return range;
}

std::string print(const DailyRange& range) {
  return (range.days == DailyRange::kEveryDay ? "" : days_text(range.days)) +
         clock_text(range.from) + ".." + clock_text(range.until) + " " + range.zone.name();
}

std::vector<Interval> intervals_of(const std::vector<DailyRange>& ranges, Instant from,
                                   Instant until) {
  std::vector<Interval> all;
  for (const DailyRange& range : ranges) {
    BoundFinder bounds(range.zone);
    const std::int64_t last = day_of(wall_time(until, range.zone)) + 1;
    const Duration end = range.until + (range.until <= range.from ? kDay : Duration());
    for (std::int64_t day = day_of(wall_time(from, range.zone)) - 2; day <= last; ++day) {
      if ((range.days >> weekday_of_day(day) & 1U) == 0) {
        continue;
      }
      const Interval hours{std::max(from, bounds.first_shown(wall_time_on(day, range.from))),
                           std::min(until, bounds.first_shown(wall_time_on(day, end)))};
      if (hours.from < hours.until) {
        all.push_back(hours);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return merged(all);
}

}  // namespace bmgpu::wire
