// A job's log on its way to standard output.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "cli/json.h"
#include "cli/log_cursor.h"

namespace bmgpu::cli {

// {"sequence":1,"time_unix_ms":…,"stream":"stdout","text":"…","partial":false}
Json to_json(const LogEntry& entry);

// The job's own lines go to `out` byte for byte; the market's remarks and gaps to `err`.
class LogPrinter {
 public:
  enum class Form { Text, TextWithTimes, JsonLines };
  LogPrinter(std::ostream& out, std::ostream& err, Form form, std::int64_t since_unix_ms)
      : out_(out), err_(err), form_(form), since_unix_ms_(since_unix_ms) {}

  void print(const LogEntries& entries);

 private:
  void print_text(const LogEntry& entry);

  std::ostream& out_;
  std::ostream& err_;
  Form form_;
  std::int64_t since_unix_ms_;
  bool line_open_ = false;  // the last entry was partial
};

}  // namespace bmgpu::cli
