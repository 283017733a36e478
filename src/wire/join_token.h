// The text of a join token: everything that a machine needs to become a node of a market.
//
// "bmj1." + base64url (RFC 4648 §5, no padding) of JoinToken as JSON. At most 4 KiB.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::v1 {
class JoinToken;
}

namespace bmgpu::wire {

std::string encode_join_token(const v1::JoinToken& token);

// InvalidArgument with what to do next: not a join token, damaged, or a field is missing.
// Surrounding white space is ignored (tokens are pasted).
Result<v1::JoinToken> decode_join_token(std::string_view text);

}  // namespace bmgpu::wire
