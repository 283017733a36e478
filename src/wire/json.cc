#include "wire/json.h"

#include <google/protobuf/struct.pb.h>

#include "wire/encoding.h"

namespace bmgpu::wire {
namespace {

void append_escaped(std::string& json, unsigned char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  json += "\\u00";
  json += kHex[c >> 4];
  json += kHex[c & 15];
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (text.empty()) {
    return 0;
  }
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xc2 || first > 0xf4 || !follows(1)) {
    return 0;
  }
  if (first < 0xe0) {
    return 2;
  }
  const unsigned char second = byte(1);
  if (first < 0xf0) {
    const bool overlong = first == 0xe0 && second < 0xa0;
    const bool surrogate = first == 0xed && second >= 0xa0;
    return overlong || surrogate || !follows(2) ? 0 : 3;
  }
  const bool overlong = first == 0xf0 && second < 0x90;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || too_large || !follows(2) || !follows(3) ? 0 : 4;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

void append_json_string(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      json += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      append_escaped(json, static_cast<unsigned char>(c));
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  json += '"';
}

Result<JsonObject> parse_json_object(std::string_view json) {
  google::protobuf::Struct parsed;
  const Result<void> decoded = decode(Encoding::Json, json, parsed);
  if (!decoded.ok()) {
    return decoded.error();
  }
  JsonObject object;
  for (const auto& [key, value] : parsed.fields()) {
    if (value.has_string_value()) {
      object.emplace(key, value.string_value());
    }
  }
  return object;
}

std::string print_json_object(const JsonObject& object) {
  std::string json = "{";
  for (const auto& [key, value] : object) {
    if (json.size() > 1) {
      json += ',';
    }
    append_json_string(json, key);
    json += ':';
    append_json_string(json, value);
  }
  json += '}';
  return json;
}

}  // namespace bmgpu::wire
