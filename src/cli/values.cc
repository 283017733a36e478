#include "cli/values.h"

#include "cli/command.h"
#include "cli/text.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

Error named(const std::string& name, const Error& error) {
  return {error.code, name + ": " + error.message};
}

template <typename Read>
Result<std::optional<std::int64_t>> option(const Arguments& arguments, const char* name,
                                           const Read& read) {
  const std::optional<std::string> text = arguments.value(name);
  if (!text) {
    return std::optional<std::int64_t>();
  }
  Result<std::int64_t> value = read(*text, std::string("--") + name);
  return value ? Result<std::optional<std::int64_t>>(std::optional(*value)) : value.error();
}

}  // namespace

Result<std::optional<std::int64_t>> count_option(const Arguments& arguments, const char* name,
                                                 std::int64_t min, std::int64_t max) {
  return option(arguments, name, [&](const std::string& text, const std::string& written) {
    return count_value(text, written, min, max);
  });
}

Result<std::optional<std::int64_t>> duration_ms_option(const Arguments& arguments,
                                                       const char* name) {
  return option(arguments, name, duration_ms_value);
}

Result<std::optional<std::int64_t>> size_mib_option(const Arguments& arguments, const char* name) {
  return option(arguments, name, size_mib_value);
}

Result<std::optional<std::int64_t>> money_option(const Arguments& arguments, const char* name) {
  return option(arguments, name, money_value);
}

Result<std::int64_t> count_value(const std::string& text, const std::string& name, std::int64_t min,
                                 std::int64_t max) {
  return wire::parse_count(text, name, min, max);
}

Result<std::int64_t> duration_ms_value(const std::string& text, const std::string& name) {
  Result<Duration> value = wire::parse_duration(text);
  return value ? Result<std::int64_t>(value->count()) : named(name, value.error());
}

Result<std::int64_t> size_mib_value(const std::string& text, const std::string& name) {
  Result<std::int64_t> value = wire::parse_size_mib(text);
  return value ? value : named(name, value.error());
}

Result<std::int64_t> money_value(const std::string& text, const std::string& name) {
  Result<Money> value = wire::parse_money(text);
  return value ? Result<std::int64_t>(value->count()) : named(name, value.error());
}

Result<std::int64_t> cpu_millis_value(const std::string& text, const std::string& name) {
  constexpr std::int64_t kMicrosPerMilli = 1000;
  constexpr std::int64_t kCpusMax = 100'000;
  const Result<Money> value = wire::parse_money(text);  // a decimal number with 6 decimals
  if (!value || value->count() % kMicrosPerMilli != 0 ||
      value->count() > kCpusMax * 1000 * kMicrosPerMilli) {
    return Error{ErrorCode::InvalidArgument,
                 name + ": \"" + printable(text) +
                     "\" is not a number of CPUs: write 0.001 to 100000, such as 8 or 2.5"};
  }
  return value->count() / kMicrosPerMilli;
}

}  // namespace bmgpu::cli
