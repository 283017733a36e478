#include "cli/log_print.h"

#include <ostream>

#include "cli/format.h"
#include "cli/text.h"

namespace bmgpu::cli {
namespace {

const char* stream_name(LogEntry::Stream stream) {
  switch (stream) {
    case LogEntry::Stream::Stdout:
      return "stdout";
    case LogEntry::Stream::Stderr:
      return "stderr";
    case LogEntry::Stream::System:
      return "system";
  }
  check(false, "log stream: no such value");
  return "";
}

}  // namespace

Json to_json(const LogEntry& entry) {
  return Json::object()
      .set("sequence", entry.sequence)
      .set("time_unix_ms", entry.time_unix_ms)
      .set("stream", stream_name(entry.stream))
      .set("text", entry.text)
      .set("partial", entry.partial);
}

void LogPrinter::print(const LogEntries& entries) {
  if (entries.missing > 0) {
    err_ << "bmcli: " << entries.missing << " lines are no longer kept\n";
  }
  for (const LogEntry& entry : entries.entries) {
    if (entry.time_unix_ms < since_unix_ms_) {
      continue;
    }
    if (form_ == Form::JsonLines) {
      out_ << to_json(entry).dump() << '\n';
    } else {
      print_text(entry);
    }
  }
  out_.flush();
}

void LogPrinter::print_text(const LogEntry& entry) {
  if (entry.stream == LogEntry::Stream::System) {
    err_ << "bmcli: " << printable(entry.text) << std::endl;
    return;
  }
  if (form_ == Form::TextWithTimes && !line_open_) {
    out_ << time_text(entry.time_unix_ms) << "  ";
  }
  out_ << entry.text;
  line_open_ = entry.partial;
  if (!entry.partial) {
    out_ << '\n';
  }
}

}  // namespace bmgpu::cli
