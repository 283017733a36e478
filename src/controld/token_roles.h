// The roles of tokens: in the program, in the schema (wire and records) and in a token's text.
#pragma once

#include <string_view>

#include "api/server.h"

namespace bmgpu::v1 {
enum Role : int;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

v1::Role schema_role(api::Role role);
// Precondition: a role that the schema names.
api::Role api_role(v1::Role role);
// "tenant", "owner", "operator", "join" or "node".
std::string_view token_kind(v1::Role role);

}  // namespace bmgpu::controld
