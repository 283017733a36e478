// Where a reader of a job's log stands: what to ask for next, and which lines are new.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::v1 {
class StreamLogsRequest;
}

namespace bmgpu::cli {

struct LogEntry {
  enum class Stream { Stdout, Stderr, System };
  std::uint64_t sequence = 0;
  std::int64_t time_unix_ms = 0;
  Stream stream = Stream::Stdout;
  std::string text;      // bytes of the job, not necessarily UTF-8
  bool partial = false;  // the line goes on in the next entry
};

struct LogEntries {
  std::vector<LogEntry> entries;  // each sequence number at most once, ascending
  std::uint64_t missing = 0;      // lines among them that the market no longer has
  bool complete = false;          // no line will follow
};

class LogCursor {
 public:
  enum class Follow { No, Yes };
  // `tail` > 0: start with the last lines only.
  LogCursor(std::string id, Follow follow, std::uint32_t tail)
      : id_(std::move(id)), follow_(follow), tail_(tail) {}

  // Goes on after the last line that take() saw, however the connection broke.
  void fill(v1::StreamLogsRequest& request) const;

  // Takes a serialised LogChunk; lines had before are left out.
  Result<LogEntries> take(std::string_view bytes);

 private:
  std::string id_;
  Follow follow_;
  std::uint32_t tail_;  // 0 once a line was seen: then the number says where to go on
  std::uint64_t next_ = 1;
};

}  // namespace bmgpu::cli
