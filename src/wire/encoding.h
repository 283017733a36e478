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

// Bytes → message, strictly, for requests: unknown fields (a newer client's wish that this server
// cannot honour), invalid UTF-8 and trailing bytes are InvalidArgument that says what was wrong.
// `message` is unspecified after an error.
Result<void> decode(Encoding encoding, std::string_view bytes, google::protobuf::Message& message);

// Binary bytes → message, for answers and frames of a peer that may be newer: unknown fields are
// kept and ignored, everything else is as strict. DataLoss after an error.
Result<void> decode_answer(std::string_view bytes, google::protobuf::Message& message);

// Message → bytes. JSON uses lowerCamelCase names and prints default values.
std::string encode(Encoding encoding, const google::protobuf::Message& message);

}  // namespace bmgpu::wire
