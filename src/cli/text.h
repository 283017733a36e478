// Text for terminals and documents: UTF-8 checks, display width, suggestions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace bmgpu::cli {

// One decoded character and the bytes it took; `valid` is false for a byte that starts none.
struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};
// REQUIRES: !text.empty(). Rejects overlong forms, surrogates and codes above U+10FFFF.
Utf8Character decode_utf8(std::string_view text);

// `text` fit for one table cell or message line: valid UTF-8, control characters as \xNN, so that
// a name made by somebody else cannot move the cursor.
std::string printable(std::string_view text);

// Columns that valid UTF-8 takes on a terminal: 2 for wide characters, 0 for combining marks.
std::size_t display_width(std::string_view text);

// "; did you mean X?", or "" if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace bmgpu::cli
