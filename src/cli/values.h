// Values of options, read and checked in one place so that every command words its errors alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace bmgpu::cli {

class Arguments;

// Each reads option `name`: absent gives nothing, malformed gives InvalidArgument that begins with
// the option's name.
Result<std::optional<std::int64_t>> count_option(const Arguments& arguments, const char* name,
                                                 std::int64_t min, std::int64_t max);
Result<std::optional<std::int64_t>> duration_ms_option(const Arguments& arguments,
                                                       const char* name);
Result<std::optional<std::int64_t>> size_mib_option(const Arguments& arguments, const char* name);
// Micro-units.
Result<std::optional<std::int64_t>> money_option(const Arguments& arguments, const char* name);

// The same for one text under a name of the caller's, "--gpus" or "gpus".
Result<std::int64_t> count_value(const std::string& text, const std::string& name, std::int64_t min,
                                 std::int64_t max);
Result<std::int64_t> duration_ms_value(const std::string& text, const std::string& name);
Result<std::int64_t> size_mib_value(const std::string& text, const std::string& name);
Result<std::int64_t> money_value(const std::string& text, const std::string& name);
// CPUs with at most 3 decimals, in thousandths.
Result<std::int64_t> cpu_millis_value(const std::string& text, const std::string& name);

inline constexpr std::int64_t kGpusMax = 64;

}  // namespace bmgpu::cli
