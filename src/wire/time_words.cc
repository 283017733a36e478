#include "wire/time_words.h"

#include <array>

namespace bmgpu::wire {
namespace {

constexpr std::array<std::string_view, 7> kWeekdays = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
constexpr std::size_t kShortWeekday = 3;

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

std::optional<std::int64_t> take_digits(std::string_view& rest, std::size_t digits) {
  if (rest.size() < digits) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (rest[i] < '0' || rest[i] > '9') {
      return std::nullopt;
    }
    value = value * 10 + (rest[i] - '0');
  }
  rest.remove_prefix(digits);
  return value;
}

bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) {
    return false;
  }
  rest.remove_prefix(text.size());
  return true;
}

std::optional<Duration> take_clock(std::string_view& rest) {
  std::string_view ahead = rest;
  const auto hour = take_digits(ahead, 2);
  const bool colon = take(ahead, ":");
  const auto minute = take_digits(ahead, 2);
  if (!hour || !colon || !minute || *hour > 23 || *minute > 59) {
    return std::nullopt;
  }
  Duration since = hours(*hour) + minutes(*minute);
  if (take(ahead, ":")) {
    const auto second = take_digits(ahead, 2);
    if (!second || *second > 59) {
      return std::nullopt;
    }
    since += seconds(*second);
    if (take(ahead, ".")) {
      const auto fraction = take_digits(ahead, 3);
      if (!fraction) {
        return std::nullopt;
      }
      since += milliseconds(*fraction);
    }
  }
  rest = ahead;
  return since;
}

std::optional<TimeZone> offset_of(std::string_view word) {
  if (word == "Z") {
    return TimeZone::utc();
  }
  const bool ahead = take(word, "+");
  if (!ahead && !take(word, "-")) {
    return std::nullopt;
  }
  const auto since = take_clock(word);
  if (!since || !word.empty() || since->count() % minutes(1).count() != 0) {
    return std::nullopt;
  }
  return TimeZone::with_offset(ahead ? *since : Duration() - *since);
}

std::optional<int> weekday_of(std::string_view word) {
  const std::string name = lower(word);
  for (std::size_t i = 0; i < kWeekdays.size(); ++i) {
    if (name == kWeekdays[i] || name == kWeekdays[i].substr(0, kShortWeekday)) {
      return static_cast<int>(i);
    }
  }
  return std::nullopt;
}

std::string_view weekday_name(int weekday) {
  return kWeekdays.at(static_cast<std::size_t>(weekday)).substr(0, kShortWeekday);
}

std::int64_t day_of(WallTime time) {
  const std::int64_t whole = time.count() / kDay.count();
  return time.count() % kDay.count() < 0 ? whole - 1 : whole;
}

int weekday_of_day(std::int64_t day) {
  constexpr std::int64_t kThursday = 3;  // 1970-01-01
  return static_cast<int>(((day + kThursday) % 7 + 7) % 7);
}

std::string clock_text(Duration since_midnight) {
  const std::int64_t second = since_midnight.count() / 1000;
  return two_digits(second / 3600) + ":" + two_digits(second / 60 % 60) +
         (second % 60 != 0 ? ":" + two_digits(second % 60) : "");
}

std::string quoted_text(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  return "'" + std::string(text.substr(0, kShownMax)) + (text.size() > kShownMax ? "…'" : "'");
}

}  // namespace bmgpu::wire
