// Messages of the wire as JSON for scripts.
#pragma once

#include "cli/json.h"

namespace google::protobuf {
class Message;
}

namespace bmgpu::cli {

// Field names as in the schema (snake_case), every field present. Numbers are numbers, enumeration
// values are words ("host-failure"), bytes are lower-case hex; what is absent or unspecified is
// null.
Json to_json(const google::protobuf::Message& message);

// ("ROLE_NODE_JOIN", "ROLE_") → "node-join", as to_json() writes it.
std::string enum_word(std::string_view name, std::string_view prefix);

}  // namespace bmgpu::cli
