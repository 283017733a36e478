#include "sim/json_text.h"

#include <cstdio>

namespace bmgpu::sim {

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c <= '~';
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, is_plain ? c : '?');
  }
  return out + "\"";
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace bmgpu::sim
