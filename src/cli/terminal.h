// The terminal beyond plain lines: a status line, questions, raw mode.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace bmgpu::cli {

// What is going on right now, on standard error. On a terminal one line is rewritten; elsewhere
// each new text is a line of its own.
class StatusLine {
 public:
  enum class Mode { Rewrite, Lines };
  StatusLine(std::ostream& err, Mode mode) : err_(err), mode_(mode) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);
  // Takes the rewritten line away, before anything else is printed.
  void clear();

 private:
  std::ostream& err_;
  Mode mode_;
  std::string shown_;
};

// "uploading [######------] 48 %  12.3 MiB of 25.6 MiB"
std::string progress_bar(std::string_view what, std::int64_t done, std::int64_t total);

// Prints `question` and " [y/N] ", and reads a line. Only "y" and "yes" are yes.
bool ask(std::istream& in, std::ostream& err, std::string_view question);

struct TerminalSize {
  std::uint32_t rows = 24;
  std::uint32_t columns = 80;
};
TerminalSize terminal_size(int descriptor);

// Keys go to the job as they are pressed, until this object ends.
class RawMode {
 public:
  explicit RawMode(int descriptor);
  ~RawMode();
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

 private:
  struct Saved;
  int descriptor_;
  std::unique_ptr<Saved> saved_;  // null if it is no terminal
};

}  // namespace bmgpu::cli
