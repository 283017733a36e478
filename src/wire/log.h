// Structured logs: one line per event on standard error, as text or JSON.
//
// main() creates the one Log of its process and hands it on by reference. Messages are fixed
// sentences; what varies goes into fields. Secrets never do.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace bmgpu::wire {

enum class LogLevel { Debug, Info, Warning, Error, Off };
enum class LogFormat { Text, Json };

struct LogOptions {
  LogLevel level = LogLevel::Info;
  LogFormat format = LogFormat::Text;
  std::string process;  // field "process" of every line; empty = absent
};

struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v), quoted(true) {}
  LogField(std::string_view k, const char* v) : LogField(k, std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : LogField(k, std::string_view(v)) {}
  template <std::integral T>
  LogField(std::string_view k, T v) : key(k), value(std::to_string(v)), quoted(false) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), quoted(false) {}

  std::string_view key;  // snake_case
  std::string value;
  bool quoted;
};

// Thread-safe. A line is at most 16 KiB; longer ones are cut. Bytes that are not valid UTF-8 and
// control characters are escaped, so that a line stays one line.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message, Fields fields = {}) {
    write(LogLevel::Debug, message, fields);
  }
  void info(std::string_view message, Fields fields = {}) {
    write(LogLevel::Info, message, fields);
  }
  void warning(std::string_view message, Fields fields = {}) {
    write(LogLevel::Warning, message, fields);
  }
  void error(std::string_view message, Fields fields = {}) {
    write(LogLevel::Error, message, fields);
  }

 private:
  struct Sink;
  void write(LogLevel level, std::string_view message, Fields fields);
  std::unique_ptr<Sink> sink_;
};

}  // namespace bmgpu::wire
