#include "wire/units.h"

#include <array>
#include <limits>
#include <optional>

namespace bmgpu::wire {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kKibi = 1024;
constexpr std::int64_t kMebi = kKibi * 1024;
constexpr std::int64_t kGibi = kMebi * 1024;
constexpr std::int64_t kTebi = kGibi * 1024;
constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kMoneyUnitsMax = 1'000'000'000'000;
constexpr std::int64_t kDaysMax = 36'500;

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array kSizeUnits = {Unit{"B", 1},
                                   Unit{"K", kKibi},
                                   Unit{"M", kMebi},
                                   Unit{"G", kGibi},
                                   Unit{"T", kTebi},
                                   Unit{"KiB", kKibi},
                                   Unit{"MiB", kMebi},
                                   Unit{"GiB", kGibi},
                                   Unit{"TiB", kTebi},
                                   Unit{"KB", 1000},
                                   Unit{"MB", 1'000'000},
                                   Unit{"GB", 1'000'000'000},
                                   Unit{"TB", 1'000'000'000'000}};

constexpr std::array kTimeUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                                   Unit{"s", 1000}, Unit{"ms", 1}};

// What a person typed, cut and in quotes.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShownMax = 40;
  std::string shown(text.substr(0, kShownMax));
  return "'" + shown + (text.size() > kShownMax ? "…'" : "'");
}

Error refused(std::string_view text, std::string_view why, std::string_view accepted) {
  return Error{ErrorCode::InvalidArgument,
               quoted(text) + " " + std::string(why) + "; " + std::string(accepted)};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the start of `rest`; nothing if there are none or the number overflows.
std::optional<std::int64_t> take_number(std::string_view& rest) {
  std::size_t length = 0;
  std::int64_t value = 0;
  while (length < rest.size() && is_digit(rest[length])) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, rest[length] - '0', &value)) {
      return std::nullopt;
    }
    ++length;
  }
  if (length == 0) {
    return std::nullopt;
  }
  rest.remove_prefix(length);
  return value;
}

// digits[.digits] as whole × 10^decimals; at most `decimals_max` decimals, always scaled to them.
std::optional<Wide> take_decimal(std::string_view& rest, int decimals_max) {
  const auto whole = take_number(rest);
  if (!whole) {
    return std::nullopt;
  }
  Wide value = *whole;
  int decimals = 0;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    while (!rest.empty() && is_digit(rest[0])) {
      if (++decimals > decimals_max) {
        return std::nullopt;
      }
      value = value * 10 + (rest[0] - '0');
      rest.remove_prefix(1);
    }
    if (decimals == 0) {
      return std::nullopt;
    }
  }
  for (; decimals < decimals_max; ++decimals) {
    value *= 10;
  }
  return value;
}

}  // namespace

Result<std::int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kAccepted =
      "write a number and a unit without a blank, like 40G, 512MiB or 1.5T (K M G T and KiB MiB "
      "GiB TiB count in 1024s, KB MB GB TB in 1000s)";
  constexpr int kDecimals = 3;
  constexpr int kScale = 1000;
  std::string_view rest = text;
  if (rest.starts_with('-')) {
    return refused(text, "is a negative size", kAccepted);
  }
  const auto scaled = take_decimal(rest, kDecimals);
  if (!scaled) {
    return refused(text, "is not a size", kAccepted);
  }
  for (const Unit& unit : kSizeUnits) {
    if (rest != unit.name) {
      continue;
    }
    const Wide product = *scaled * unit.factor;
    if (product == 0) {
      return refused(text, "is zero", kAccepted);
    }
    if (product % kScale != 0) {
      return refused(text, "is not a whole number of bytes", kAccepted);
    }
    if (product / kScale > std::numeric_limits<std::int64_t>::max()) {
      return refused(text, "is too large", "the largest size is 8 EiB");
    }
    return static_cast<std::int64_t>(product / kScale);
  }
  return refused(text, rest.empty() ? "has no unit" : "has an unknown unit", kAccepted);
}

Result<std::int64_t> parse_size_mib(std::string_view text) {
  const Result<std::int64_t> bytes = parse_size(text);
  if (!bytes.ok()) {
    return bytes.error();
  }
  return *bytes / kMebi + (*bytes % kMebi == 0 ? 0 : 1);
}

std::string print_size(std::int64_t bytes) {
  check(bytes >= 0, "print_size: negative");
  constexpr std::array kUnits = {Unit{"TiB", kTebi}, Unit{"GiB", kGibi}, Unit{"MiB", kMebi},
                                 Unit{"KiB", kKibi}};
  for (const Unit& unit : kUnits) {
    if (bytes > 0 && bytes % unit.factor == 0) {
      return std::to_string(bytes / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + "B";
}

std::string print_size_short(std::int64_t bytes) {
  check(bytes >= 0, "print_size_short: negative");
  constexpr std::array kUnits = {Unit{"TiB", kTebi}, Unit{"GiB", kGibi}, Unit{"MiB", kMebi},
                                 Unit{"KiB", kKibi}};
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.factor) {
      const Wide tenths = (Wide{bytes} * 10 + unit.factor / 2) / unit.factor;
      const auto shown = static_cast<std::int64_t>(tenths);
      return std::to_string(shown / 10) + "." + std::to_string(shown % 10) + " " +
             std::string(unit.name);
    }
  }
  return std::to_string(bytes) + " B";
}

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::string_view kAccepted =
      "write whole numbers with d, h, m, s or ms, largest first, like 2h, 90m or 1h30m";
  if (text.starts_with('-')) {
    return refused(text, "is a negative duration", kAccepted);
  }
  std::string_view rest = text;
  std::int64_t total_ms = 0;
  std::size_t next_unit = 0;
  do {
    const auto number = take_number(rest);
    if (!number) {
      return refused(text, "is not a duration", kAccepted);
    }
    std::size_t letters = 0;
    while (letters < rest.size() && !is_digit(rest[letters])) {
      ++letters;
    }
    const std::string_view name = rest.substr(0, letters);
    while (next_unit < kTimeUnits.size() && kTimeUnits[next_unit].name != name) {
      ++next_unit;
    }
    if (next_unit == kTimeUnits.size()) {
      return refused(text, name.empty() ? "has no unit" : "has a unit that is unknown or misplaced",
                     kAccepted);
    }
    const Wide sum = Wide{total_ms} + Wide{*number} * kTimeUnits[next_unit].factor;
    if (sum > Wide{kDaysMax} * kTimeUnits[0].factor) {
      return refused(text, "is too long", "the longest duration is 36500d");
    }
    total_ms = static_cast<std::int64_t>(sum);
    ++next_unit;
    rest.remove_prefix(letters);
  } while (!rest.empty());
  if (total_ms == 0) {
    return refused(text, "is zero", kAccepted);
  }
  return milliseconds(total_ms);
}

std::string print_duration(Duration duration) {
  if (duration == Duration()) {
    return "0s";
  }
  Wide rest = duration.count();
  std::string text = rest < 0 ? "-" : "";
  rest = rest < 0 ? -rest : rest;
  for (const Unit& unit : kTimeUnits) {
    const auto number = static_cast<std::int64_t>(rest / unit.factor);
    if (number > 0) {
      text += std::to_string(number) + std::string(unit.name);
      rest %= unit.factor;
    }
  }
  return text;
}

Result<Money> parse_money(std::string_view text) {
  constexpr std::string_view kAccepted = "write an amount with up to 6 decimals, like 1.25";
  std::string_view rest = text;
  if (rest.starts_with('-')) {
    return refused(text, "is a negative amount", kAccepted);
  }
  const auto micros = take_decimal(rest, 6);
  if (!micros || !rest.empty()) {
    return refused(text, "is not an amount of money", kAccepted);
  }
  if (*micros == 0) {
    return refused(text, "is zero", kAccepted);
  }
  if (*micros > Wide{kMoneyUnitsMax} * kMicros) {
    return refused(text, "is too large", "the largest amount is 1000000000000");
  }
  return Money(static_cast<std::int64_t>(*micros));
}

std::string print_money(Money amount) {
  Wide micros = amount.count();
  std::string text = micros < 0 ? "-" : "";
  micros = micros < 0 ? -micros : micros;
  text += std::to_string(static_cast<std::int64_t>(micros / kMicros));
  std::string decimals = std::to_string(static_cast<std::int64_t>(micros % kMicros + kMicros));
  decimals[0] = '.';  // the 1 that kept the leading zeros
  while (decimals.size() > 3 && decimals.back() == '0') {
    decimals.pop_back();
  }
  return text + decimals;
}

Result<std::int64_t> parse_count(std::string_view text, std::string_view what, std::int64_t low,
                                 std::int64_t high) {
  std::string_view rest = text;
  const auto value = take_number(rest);
  if (value && rest.empty() && *value >= low && *value <= high) {
    return *value;
  }
  return Error{ErrorCode::InvalidArgument, quoted(text) + " is not a number of " +
                                               std::string(what) + "; write a whole number from " +
                                               std::to_string(low) + " to " + std::to_string(high)};
}

}  // namespace bmgpu::wire
