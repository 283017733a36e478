// Sizes, durations, money and counts as people write them. Parsing is strict and exact (no floating
// point); what is zero, negative, too large or has an unknown unit is InvalidArgument that says
// what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/money.h"
#include "base/result.h"
#include "base/time.h"

namespace bmgpu::wire {

// Bytes. A number with up to 3 decimals and a unit, no blank between: B; K M G T or KiB MiB GiB TiB
// (powers of 1024); KB MB GB TB (powers of 1000). 1 B to 8 EiB - 1, and a whole number of bytes.
Result<std::int64_t> parse_size(std::string_view text);

// The same in MiB, rounded up: "40G" = 40960.
Result<std::int64_t> parse_size_mib(std::string_view text);

// "40GiB": the largest binary unit that divides it, so that parse_size gives `bytes` again.
// REQUIRES: bytes ≥ 0.
std::string print_size(std::int64_t bytes);

// "45.0 GiB" for people: one decimal, rounded to nearest. REQUIRES: bytes ≥ 0.
std::string print_size_short(std::int64_t bytes);

// Whole numbers with d, h, m, s, ms, largest first, each at most once: "2h", "90m", "1h30m". 1 ms
// to 36,500 days.
Result<Duration> parse_duration(std::string_view text);

// "1h30m"; "0s" for zero; a leading '-' for a negative one. parse_duration reads every positive
// one.
std::string print_duration(Duration duration);

// Currency units with up to 6 decimals: "1.25" = 1,250,000 micro-units. Above zero, at most
// 1,000,000,000,000 (10^12) units.
Result<Money> parse_money(std::string_view text);

// "1.25": at least 2 decimals and as many as needed up to 6.
std::string print_money(Money amount);

// A decimal whole number in [low, high]; `what` names it in the error ("GPUs").
Result<std::int64_t> parse_count(std::string_view text, std::string_view what, std::int64_t low,
                                 std::int64_t high);

}  // namespace bmgpu::wire
