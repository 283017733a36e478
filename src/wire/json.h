// The little JSON that is not a protobuf message: error objects, join tokens, endpoint files.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::wire {

// Appends `text` as a JSON string with its quotes. Control characters are escaped, bytes that are
// not UTF-8 become U+FFFD: the result is valid JSON for any input.
void append_json_string(std::string& json, std::string_view text);

// True if `text` is well-formed UTF-8 (no overlong forms, surrogates or values above U+10FFFF).
bool is_utf8(std::string_view text);

// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text);

using JsonObject = std::map<std::string, std::string, std::less<>>;

// One flat object whose members are strings. Members of another kind are left out; what is not a
// JSON object at all is InvalidArgument.
Result<JsonObject> parse_json_object(std::string_view json);

// {"key":"value",…}, keys in order.
std::string print_json_object(const JsonObject& object);

}  // namespace bmgpu::wire
