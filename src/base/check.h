// check(): our own bugs stop the process, in release builds too.
//
// Use it for what must hold whatever the input was. A refusal by the rules of the market is an
// ordinary outcome, a failure of the outside world is a Result; neither is a check().
#pragma once

#include <source_location>

namespace bmgpu {

// Prints `what` with its source position on standard error and aborts. Thread-safe.
[[noreturn]] void check_failed(const char* what, std::source_location where);

// Aborts the process unless `holds`. One condition per call, so that the message names it.
constexpr void check(bool holds, const char* what,
                  std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    check_failed(what, where);
  }
}

}  // namespace bmgpu
