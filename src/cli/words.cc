#include "cli/words.h"

#include <algorithm>

namespace bmgpu::cli {
namespace {

constexpr std::string_view kOperators = "|&;<>";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// One pass over the line; each method reads one construct from the front of `rest_`.
class Splitter {
 public:
  explicit Splitter(std::string_view line) : rest_(line) {}

  Result<Words> split() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (is_blank(c)) {
        finish_word();
        continue;
      }
      Result<void> read = read_character(c);
      if (!read) {
        return read.error();
      }
    }
    finish_word();
    return std::move(result_);
  }

 private:
  Result<void> read_character(char c) {
    if (c == '\'') {
      return read_single_quoted();
    }
    if (c == '"') {
      return read_double_quoted();
    }
    if (c == '\\') {
      return read_escaped();
    }
    note_shell_syntax(c);
    open_ = true;
    word_ += c;
    return {};
  }

  Result<void> read_single_quoted() {
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) {
      return Error{ErrorCode::InvalidArgument, "a ' is opened and never closed"};
    }
    open_ = true;
    word_.append(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return {};
  }

  Result<void> read_double_quoted() {
    open_ = true;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') {
        return {};
      }
      const bool escape =
          c == '\\' && !rest_.empty() &&
          std::string_view("$`\"\\\n").find(rest_.front()) != std::string_view::npos;
      if (!escape) {
        if (c == '$' || c == '`') {
          note_shell_syntax(c);
        }
        word_ += c;
        continue;
      }
      if (rest_.front() != '\n') {
        word_ += rest_.front();
      }
      rest_.remove_prefix(1);
    }
    return Error{ErrorCode::InvalidArgument, "a \" is opened and never closed"};
  }

  Result<void> read_escaped() {
    if (rest_.empty()) {
      return Error{ErrorCode::InvalidArgument, "a backslash stands at the end"};
    }
    if (rest_.front() != '\n') {  // backslash and newline together are nothing
      open_ = true;
      word_ += rest_.front();
    }
    rest_.remove_prefix(1);
    return {};
  }

  void finish_word() {
    if (open_) {
      result_.words.push_back(std::move(word_));
    }
    word_.clear();
    open_ = false;
  }

  // `c` stands just before rest_.
  void note_shell_syntax(char c) {
    if (!result_.shell_syntax.empty()) {
      return;
    }
    if (kOperators.find(c) != std::string_view::npos) {
      result_.shell_syntax = c;
      if (!rest_.empty() && rest_.front() == c) {
        result_.shell_syntax += c;
      }
    } else if (c == '`') {
      result_.shell_syntax = c;
    } else if (c == '$') {
      const std::size_t end = std::min(rest_.find_first_of(" \t\n\"'"), rest_.size());
      if (end > 0) {
        result_.shell_syntax = "$" + std::string(rest_.substr(0, end));
      }
    }
  }

  std::string_view rest_;
  std::string word_;
  bool open_ = false;  // a word has begun, though it may be empty ('')
  Words result_;
};

}  // namespace

Result<Words> split_words(std::string_view line) { return Splitter(line).split(); }

std::string join_words(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      line += c == '\'' ? "'\\''" : std::string(1, c);
    }
    line += '\'';
  }
  return line;
}

}  // namespace bmgpu::cli
