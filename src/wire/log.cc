#include "wire/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdio>

#include "wire/json.h"

namespace bmgpu::wire {
namespace {

constexpr std::size_t kLineBytesMax = 16 * 1024;

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
    case LogLevel::Off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// JSON string escapes; text lines use the same ones, so that a line never breaks.
void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size() && out.size() < kLineBytesMax;) {
    const char c = text[i];
    const std::size_t length = utf8_length(text.substr(i));
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
      out += code;
    } else {
      out.append(text, i, length);
      i += length;
      continue;
    }
    ++i;
  }
}

bool plain(std::string_view value) {
  return !value.empty() && value.find_first_of(" \"\\=\n\t") == std::string_view::npos;
}

}  // namespace

struct Log::Sink {
  spdlog::logger logger;
  LogFormat format;
  std::string process;
};

Log::Log(const LogOptions& options)
    : sink_(new Sink{spdlog::logger("bmgpu", std::make_shared<spdlog::sinks::stderr_sink_mt>()),
                     options.format, options.process}) {
  sink_->logger.set_level(to_spdlog(options.level));
  const char* pattern = options.format == LogFormat::Json
                            ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                            : "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
  sink_->logger.set_pattern(pattern, spdlog::pattern_time_type::utc);
}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message, Fields fields) {
  if (!sink_->logger.should_log(to_spdlog(level))) {
    return;
  }
  const bool json = sink_->format == LogFormat::Json;
  std::string line;
  if (json) {
    line += "\"message\":\"";
  }
  append_escaped(line, message);
  if (json) {
    line += '"';
  }
  const auto add = [&](std::string_view key, std::string_view value, bool quoted) {
    if (line.size() >= kLineBytesMax) {
      return;
    }
    const bool quotes = quoted && (json || !plain(value));
    line += json ? ",\"" : " ";
    line += key;
    line += json ? "\":" : "=";
    line += quotes ? "\"" : "";
    append_escaped(line, value);
    line += quotes ? "\"" : "";
  };
  if (!sink_->process.empty()) {
    add("process", sink_->process, true);
  }
  for (const LogField& field : fields) {
    add(field.key, field.value, field.quoted);
  }
  sink_->logger.log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace bmgpu::wire
