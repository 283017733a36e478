#include "core/market/times.h"

#include <chrono>
#include <cstdint>

namespace bmgpu::core {
namespace {

constexpr std::int64_t kYear10000 = 253'402'300'800;  // in seconds since 1970

std::string padded(std::int64_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return text.insert(0, width - text.size(), '0');
}

}  // namespace

std::string utc_text(Instant at) {
  const std::int64_t unix_s = at.unix_ms() / 1000;
  if (at < Instant() || unix_s >= kYear10000) {
    return std::to_string(at.unix_ms()) + " ms";
  }
  const std::chrono::sys_seconds whole{std::chrono::seconds(unix_s)};
  const auto day = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(whole - day);
  return padded(static_cast<int>(date.year()), 4) + "-" +
         padded(static_cast<unsigned>(date.month()), 2) + "-" +
         padded(static_cast<unsigned>(date.day()), 2) + "T" + padded(time.hours().count(), 2) +
         ":" + padded(time.minutes().count(), 2) + ":" + padded(time.seconds().count(), 2) + "Z";
}

}  // namespace bmgpu::core
