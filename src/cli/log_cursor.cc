#include "cli/log_cursor.h"

#include <utility>

#include "bmgpu/v1/market.pb.h"

namespace bmgpu::cli {
namespace {

LogEntry::Stream stream_of(v1::LogStream stream) {
  switch (stream) {
    case v1::LOG_STREAM_STDERR:
      return LogEntry::Stream::Stderr;
    case v1::LOG_STREAM_SYSTEM:
      return LogEntry::Stream::System;
    default:
      return LogEntry::Stream::Stdout;
  }
}

}  // namespace

void LogCursor::fill(v1::StreamLogsRequest& request) const {
  request.set_id(id_);
  request.set_follow(follow_ == Follow::Yes);
  request.set_from_sequence(next_);
  request.set_tail(tail_);
}

Result<LogEntries> LogCursor::take(std::string_view bytes) {
  v1::LogChunk chunk;
  if (!chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{ErrorCode::DataLoss, "the market sent a log message that cannot be read"};
  }
  LogEntries out;
  for (v1::LogLine& line : *chunk.mutable_lines()) {
    if (line.sequence() < next_) {
      continue;
    }
    out.missing += tail_ > 0 ? 0 : line.sequence() - next_;
    next_ = line.sequence() + 1;
    tail_ = 0;
    out.entries.push_back({line.sequence(), line.time_unix_ms(), stream_of(line.stream()),
                           std::move(*line.mutable_text()), line.partial()});
  }
  out.complete = chunk.complete();
  return out;
}

}  // namespace bmgpu::cli
