#include "agent/runtime/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

#include "agent/runtime/files.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kChunkBytes = 256 * 1024;
// A line of conmon is at most 8 KiB of text and a short head.
constexpr std::size_t kLineBytesMax = 64 * 1024;

bool digits(std::string_view text, std::size_t at, std::size_t count, int& number) {
  const std::string_view part = text.substr(at, count);
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  return part.size() == count && error == std::errc() && end == part.data() + part.size();
}

}  // namespace

std::optional<std::int64_t> parse_rfc3339_ms(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || !digits(text, 0, 4, year) || !digits(text, 5, 2, month) ||
      !digits(text, 8, 2, day) || !digits(text, 11, 2, hour) || !digits(text, 14, 2, minute) ||
      !digits(text, 17, 2, second)) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) {
    return std::nullopt;
  }
  std::int64_t ms = std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86400000};
  ms += ((hour * 60 + minute) * 60 + second) * std::int64_t{1000};
  std::size_t at = 19;
  if (text[at] == '.') {
    std::int64_t unit = 100;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      ms += (text[at] - '0') * unit;
      unit /= 10;
    }
  }
  if (text.substr(at) == "Z") {
    return ms;
  }
  int zone_hours = 0, zone_minutes = 0;
  if (text.size() != at + 6 || (text[at] != '+' && text[at] != '-') || text[at + 3] != ':' ||
      !digits(text, at + 1, 2, zone_hours) || !digits(text, at + 4, 2, zone_minutes)) {
    return std::nullopt;
  }
  const std::int64_t zone = (zone_hours * 60 + zone_minutes) * std::int64_t{60000};
  return text[at] == '+' ? ms - zone : ms + zone;
}

LogEntry parse_log_line(std::string_view line, std::uint64_t sequence) {
  LogEntry entry;
  entry.sequence = sequence;
  entry.source = LogSource::System;
  entry.text = line.substr(0, kLogTextBytesMax);
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return entry;
  }
  const std::optional<std::int64_t> time = parse_rfc3339_ms(line.substr(0, first));
  const std::string_view stream = line.substr(first + 1, second - first - 1);
  const std::string_view rest = line.substr(second + 1);
  const bool tagged =
      !rest.empty() && (rest[0] == 'F' || rest[0] == 'P') && (rest.size() == 1 || rest[1] == ' ');
  if (!time || !tagged || (stream != "stdout" && stream != "stderr")) {
    return entry;
  }
  entry.time_unix_ms = *time;
  entry.source = stream == "stdout" ? LogSource::Stdout : LogSource::Stderr;
  entry.partial = rest[0] == 'P';
  entry.text = rest.substr(std::min<std::size_t>(2, rest.size())).substr(0, kLogTextBytesMax);
  return entry;
}

LogTail::LogTail(std::string path, LogPosition from) : path_(std::move(path)), position_(from) {}

Result<std::vector<LogEntry>> LogTail::read(std::size_t lines_max, std::size_t bytes_max) {
  std::vector<LogEntry> entries;
  const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT && position_.offset == 0) {
      return entries;
    }
    return errno_error(path_, errno);
  }
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) < position_.offset) {
    return Error{ErrorCode::DataLoss, path_ + ": the log became shorter"};
  }
  std::string chunk(std::min(kChunkBytes, std::max(bytes_max, kLineBytesMax)), '\0');
  const ssize_t got =
      ::pread(fd.get(), chunk.data(), chunk.size(), static_cast<off_t>(position_.offset));
  if (got < 0) {
    return errno_error(path_, errno);
  }
  std::string_view rest(chunk.data(), static_cast<std::size_t>(got));
  std::size_t bytes = 0;
  while (entries.size() < lines_max && (entries.empty() || bytes < bytes_max)) {
    std::size_t end = rest.find('\n');
    std::size_t skip = 1;
    if (end == std::string_view::npos) {
      if (rest.size() < kLineBytesMax) {
        break;  // torn: its end will come
      }
      end = kLineBytesMax;
      skip = 0;
    }
    entries.push_back(parse_log_line(rest.substr(0, end), position_.next_sequence));
    bytes += entries.back().text.size();
    position_.offset += end + skip;
    ++position_.next_sequence;
    rest.remove_prefix(end + skip);
  }
  return entries;
}

Result<void> LogTail::seek(std::uint64_t sequence) {
  if (sequence < position_.next_sequence) {
    position_ = LogPosition{};
  }
  while (position_.next_sequence < sequence) {
    Result<std::vector<LogEntry>> skipped =
        read(static_cast<std::size_t>(sequence - position_.next_sequence), kChunkBytes);
    if (!skipped.ok()) {
      return skipped.error();
    }
    if (skipped->empty()) {
      break;
    }
  }
  return {};
}

}  // namespace bmgpu::agent
