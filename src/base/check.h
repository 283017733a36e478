// check(): our own bugs stop the process, in release builds too.
//
// Use it for what must hold whatever the input was. A refusal by the rules of the market is an
// ordinary outcome, a failure of the outside world is a Result; neither is a check().
#pragma once

namespace bmgpu {

// Prints `what` with its source position on standard error and aborts. Thread-safe. Leave the last
// three arguments to their defaults, the caller's position (std::source_location does the same, but
// clang before 16, which builds the fuzz targets, lacks it).
[[noreturn]] void check_failed(const char* what, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE(),
                               const char* function = __builtin_FUNCTION());

// Aborts the process unless `holds`. One condition per call, so that the message names it. The last
// three arguments as in check_failed().
constexpr void check(bool holds, const char* what, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE(), const char* function = __builtin_FUNCTION()) {
  if (!holds) [[unlikely]] {
    check_failed(what, file, line, function);
  }
}

}  // namespace bmgpu
