// Reads a container's log as conmon writes it (k8s-file): "TIME STREAM F|P TEXT\n" a line.
//
// The number of a line in the file is its sequence, so a reader that knows the next sequence it
// wants can start anywhere, any time, and nothing is lost or doubled. A torn last line (conmon is
// writing it) is not returned until its end is there. A line that does not parse keeps its number
// and is returned as System text, so sequences have no gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

enum class LogSource : std::uint8_t { Stdout, Stderr, System };

struct LogEntry {
  std::uint64_t sequence = 0;  // 1 for the first line of the file
  std::int64_t time_unix_ms = 0;
  LogSource source = LogSource::Stdout;
  bool partial = false;  // the job's line goes on in the next entry
  std::string text;      // at most kLogTextBytesMax
  bool operator==(const LogEntry&) const = default;
};

// conmon cuts at 8 KiB; anything longer is somebody else's file and is cut here.
inline constexpr std::size_t kLogTextBytesMax = 16 * 1024;

struct LogPosition {
  std::uint64_t offset = 0;         // of the next line's first byte
  std::uint64_t next_sequence = 1;  // of that line
  bool operator==(const LogPosition&) const = default;
};

// "2026-11-30T18:29:03.843617053+00:00" or "…Z" as Unix milliseconds.
std::optional<std::int64_t> parse_rfc3339_ms(std::string_view text);

// Parses one line without its '\n'.
LogEntry parse_log_line(std::string_view line, std::uint64_t sequence);

// Not thread-safe. Opens the file anew for each read: the file may not exist yet (no lines).
class LogTail {
 public:
  explicit LogTail(std::string path, LogPosition from = {});

  const LogPosition& position() const { return position_; }

  // The next whole lines, at most that many and about that many bytes of text (at least one line
  // if there is one). Empty: no further whole line now. DataLoss: the file became shorter.
  Result<std::vector<LogEntry>> read(std::size_t lines_max, std::size_t bytes_max);

  // Moves to the line with that sequence, from the start of the file if it lies behind. Stops at
  // the end of the file if there are fewer lines.
  Result<void> seek(std::uint64_t sequence);

 private:
  std::string path_;
  LogPosition position_;
};

}  // namespace bmgpu::agent
