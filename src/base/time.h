// Points in time and durations of the market, in whole milliseconds, UTC.
//
// These are market times: they come in with a command's stamp. Code that measures real durations
// uses std::chrono::steady_clock or CLOCK_BOOTTIME at the edge and converts.
#pragma once

#include <compare>
#include <cstdint>

#include "base/quantity.h"

namespace bmgpu {

// A span in milliseconds. May be negative.
using Duration = Quantity<struct DurationTag>;

// Milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted (POSIX).
class Instant {
 public:
  constexpr Instant() = default;
  constexpr explicit Instant(std::int64_t unix_ms) : unix_ms_(unix_ms) {}
  constexpr std::int64_t unix_ms() const { return unix_ms_; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) {
    return Instant((Duration(t.unix_ms_) + d).count());
  }
  friend constexpr Instant operator-(Instant t, Duration d) {
    return Instant((Duration(t.unix_ms_) - d).count());
  }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return Duration(a.unix_ms_) - Duration(b.unix_ms_);
  }

 private:
  std::int64_t unix_ms_ = 0;
};

constexpr Duration milliseconds(std::int64_t n) { return Duration(n); }
constexpr Duration seconds(std::int64_t n) { return Duration(1000) * n; }
constexpr Duration minutes(std::int64_t n) { return Duration(60'000) * n; }
constexpr Duration hours(std::int64_t n) { return Duration(3'600'000) * n; }

// One slot: 15 minutes, aligned to UTC quarter hours.
inline constexpr Duration kSlot = minutes(15);

// The number of the UTC quarter hour: floor(unix_ms / 900,000).
using SlotNumber = Quantity<struct SlotNumberTag>;

constexpr SlotNumber slot_of(Instant t) {
  const std::int64_t ms = t.unix_ms();
  const std::int64_t whole = ms / kSlot.count();
  return SlotNumber(ms % kSlot.count() < 0 ? whole - 1 : whole);
}
constexpr Instant slot_start(SlotNumber slot) { return Instant() + kSlot * slot.count(); }

}  // namespace bmgpu
