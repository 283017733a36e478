#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>

#include <istream>
#include <ostream>

#include "cli/text.h"
#include "wire/units.h"

namespace bmgpu::cli {

namespace {

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

void StatusLine::show(const std::string& text) {
  const std::string line = printable(text);
  const bool same =
      mode_ == Mode::Rewrite ? line == shown_ : without_digits(line) == without_digits(shown_);
  if (same) {
    return;
  }
  if (mode_ == Mode::Rewrite) {
    err_ << "\r\x1b[K" << line << std::flush;
  } else {
    err_ << line << std::endl;
  }
  shown_ = line;
}

void StatusLine::clear() {
  if (mode_ == Mode::Rewrite && !shown_.empty()) {
    err_ << "\r\x1b[K" << std::flush;
    shown_.clear();
  }
}

std::string progress_bar(std::string_view what, std::int64_t done, std::int64_t total) {
  constexpr std::int64_t kCells = 24;
  const std::int64_t whole = total < 1 ? 1 : total;
  const std::int64_t part = done > whole ? whole : done;
  const auto filled = static_cast<std::size_t>(part * kCells / whole);
  return std::string(what) + " [" + std::string(filled, '#') +
         std::string(static_cast<std::size_t>(kCells) - filled, '-') + "] " +
         std::to_string(part * 100 / whole) + " %  " + wire::print_size_short(part) + " of " +
         wire::print_size_short(total);
}

bool ask(std::istream& in, std::ostream& err, std::string_view question) {
  err << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(in, answer);
  return answer == "y" || answer == "yes" || answer == "Y";
}

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

struct TerminalMode::Saved {
  termios settings{};
};

TerminalMode::TerminalMode(int descriptor, Kind kind) : descriptor_(descriptor) {
  auto saved = std::make_unique<Saved>();
  if (::tcgetattr(descriptor, &saved->settings) != 0) {
    return;
  }
  termios changed = saved->settings;
  if (kind == Kind::Raw) {
    ::cfmakeraw(&changed);
  } else {
    changed.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  }
  if (::tcsetattr(descriptor, TCSADRAIN, &changed) == 0) {
    saved_ = std::move(saved);
  }
}

TerminalMode::~TerminalMode() { restore(); }

void TerminalMode::restore() const {
  if (saved_) {
    ::tcsetattr(descriptor_, TCSADRAIN, &saved_->settings);
  }
}

}  // namespace bmgpu::cli
