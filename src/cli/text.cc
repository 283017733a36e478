#include "cli/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/nearest.h"

namespace bmgpu::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// East Asian Wide and Fullwidth blocks, and the pictographs that terminals draw in two columns.
constexpr std::array<Range, 15> kWide = {{{0x1100, 0x115f},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0x33ff},
                                          {0x3400, 0x4dbf},
                                          {0x4e00, 0x9fff},
                                          {0xa000, 0xa4cf},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0xffe0, 0xffe6},
                                          {0x1f300, 0x1f64f},
                                          {0x1f680, 0x1f6ff},
                                          {0x1f900, 0x1f9ff},
                                          {0x20000, 0x3fffd}}};
constexpr std::array<Range, 6> kZeroWidth = {{{0x0300, 0x036f},
                                              {0x200b, 0x200f},
                                              {0x20d0, 0x20ff},
                                              {0xfe00, 0xfe0f},
                                              {0xfe20, 0xfe2f},
                                              {0xfeff, 0xfeff}}};

bool within(char32_t code, const auto& ranges) {
  return std::ranges::any_of(
      ranges, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

Utf8Character decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1, true};
  }
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return {};
  }
  char32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return {};
    }
    code = (code << 6) | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    return {};
  }
  return {code, length, true};
}

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = decode_utf8(text);
    const bool control =
        next.valid && (next.code < 0x20 || (next.code >= 0x7f && next.code < 0xa0));
    if (!next.valid || control) {
      const auto shown = next.valid ? static_cast<std::uint8_t>(next.code)
                                    : static_cast<std::uint8_t>(text.front());
      out += "\\x";
      out += kHex[shown >> 4];
      out += kHex[shown & 0xf];
    } else {
      out.append(text.substr(0, next.bytes));
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Utf8Character next = decode_utf8(text);
    if (!within(next.code, kZeroWidth)) {
      width += within(next.code, kWide) ? 2 : 1;
    }
    text.remove_prefix(next.bytes);
  }
  return width;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string found = nearest(word, candidates);
  return found.empty() ? "" : "; did you mean " + found + "?";
}

}  // namespace bmgpu::cli
