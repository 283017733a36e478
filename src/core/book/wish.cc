#include "core/book/wish.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/market/times.h"

namespace bmgpu::core {
namespace {

Reason out_of_range(std::string detail) {
  return Reason{ReasonCode::OutOfRange, std::move(detail)};
}

std::optional<Reason> check_allowed(const std::vector<Interval>& allowed) {
  if (std::ssize(allowed) > Limits::kAllowedIntervalsMax) {
    return out_of_range("at most " + std::to_string(Limits::kAllowedIntervalsMax) +
                        " intervals of allowed time; name fewer days");
  }
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i].from >= allowed[i].until) {
      return out_of_range("the allowed time from " + utc_text(allowed[i].from) + " to " +
                          utc_text(allowed[i].until) + " is empty; its end comes after its start");
    }
    if (i > 0 && allowed[i].from < allowed[i - 1].until) {
      return out_of_range("allowed times are in order and do not overlap; the one from " +
                          utc_text(allowed[i].from) + " begins before " +
                          utc_text(allowed[i - 1].until));
    }
  }
  return std::nullopt;
}

// Where a lease that the wish allows may lie.
std::vector<Interval> windows_of(const TimeWish& wish) {
  if (wish.allowed.empty()) {
    return {Interval{wish.earliest, wish.deadline}};
  }
  std::vector<Interval> windows;
  for (const Interval& allowed : wish.allowed) {
    const Interval window{std::max(allowed.from, wish.earliest),
                          std::min(allowed.until, wish.deadline)};
    if (window.from < window.until) {
      windows.push_back(window);
    }
  }
  return windows;
}

std::optional<Reason> check_window(const TimeWish& wish, Duration duration, Instant end) {
  if (wish.deadline > end) {
    return out_of_range("the deadline " + utc_text(wish.deadline) +
                        " is beyond what can be booked; the latest is " + utc_text(end));
  }
  if (wish.deadline - wish.earliest < duration) {
    return out_of_range("it cannot be finished by " + utc_text(wish.deadline) +
                        "; the earliest deadline that works is " +
                        utc_text(wish.earliest + duration));
  }
  Duration longest;
  for (const Interval& window : windows_of(wish)) {
    longest = std::max(longest, window.until - window.from);
  }
  if (longest < duration) {
    return out_of_range("no allowed time before the deadline is long enough; the longest is " +
                        std::to_string(longest.count() / 60'000) + " minutes");
  }
  return std::nullopt;
}

}  // namespace

Instant book_end(const State& state, Instant now) {
  const SlotNumber first = state.open_slot == SlotNumber() ? slot_of(now) : state.open_slot;
  return slot_start(first + SlotNumber(Limits::kBookSlots));
}

Instant next_border(Instant at) {
  const Instant border = slot_start(slot_of(at));
  return border == at ? at : border + kSlot;
}

std::variant<TimeWish, Reason> checked_wish(const State& state, const TimeWish& wish,
                                            Duration duration, Instant now) {
  const Instant end = book_end(state, now);
  TimeWish checked = wish;
  switch (wish.start) {
    case StartKind::Now:
      return TimeWish{};
    case StartKind::At:
      if (wish.earliest < now) {
        return out_of_range("the start " + utc_text(wish.earliest) +
                            " has passed; the earliest is now, " + utc_text(now));
      }
      if (wish.earliest > end || end - wish.earliest < duration) {
        return out_of_range("a lease of that length from " + utc_text(wish.earliest) +
                            " on reaches beyond what can be booked; the latest start that works "
                            "is " +
                            utc_text(end - duration));
      }
      checked.deadline = Instant();
      checked.allowed.clear();
      return checked;
    case StartKind::Cheapest:
      break;
  }
  if (wish.deadline <= now) {
    return out_of_range("the deadline " + utc_text(wish.deadline) +
                        " has passed; the earliest that works is " + utc_text(now + duration));
  }
  if (auto reason = check_allowed(wish.allowed)) {
    return std::move(*reason);
  }
  checked.earliest = std::max(wish.earliest, now);
  if (auto reason = check_window(checked, duration, end)) {
    return std::move(*reason);
  }
  return checked;
}

std::vector<Instant> starts_of(const TimeWish& wish, Duration duration) {
  if (wish.start == StartKind::At) {
    return {wish.earliest};
  }
  std::vector<Instant> starts;
  for (const Interval& window : windows_of(wish)) {
    const Instant last = window.until - duration;
    if (window.from <= last) {
      starts.push_back(window.from);
    }
    for (Instant at = next_border(window.from + milliseconds(1)); at <= last; at = at + kSlot) {
      starts.push_back(at);
    }
  }
  return starts;
}

}  // namespace bmgpu::core
