// The terminal beyond plain lines: a status line, questions, raw mode.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace bmgpu::cli {

// What is going on right now, on standard error. On a terminal one line is rewritten; elsewhere
// each new text is a line of its own, but not one in which only digits differ: a log wants news,
// not a price or a percentage every few seconds.
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

// Changes how a terminal takes keys, until this object ends. On anything else it does nothing.
class TerminalMode {
 public:
  enum class Kind {
    Raw,    // each key goes through as it is pressed
    Hidden  // what is typed is not shown
  };
  TerminalMode(int descriptor, Kind kind);
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  // As it was before. Also from another thread, for Ctrl-C.
  void restore() const;

 private:
  struct Saved;
  int descriptor_;
  std::unique_ptr<Saved> saved_;  // null if it is no terminal
};

}  // namespace bmgpu::cli
