// The two encodings of the wire and the messages between them and bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace google::protobuf {
class Message;
}

namespace bmgpu::wire {

enum class Encoding { Proto, Json };

// Bytes → message. Unknown JSON fields, invalid UTF-8, trailing bytes: InvalidArgument that names
// the field or position. `message` is unspecified after an error.
Result<void> decode(Encoding encoding, std::string_view bytes, google::protobuf::Message& message);

// Message → bytes. JSON uses lowerCamelCase names and prints default values.
std::string encode(Encoding encoding, const google::protobuf::Message& message);

}  // namespace bmgpu::wire
