// Token secrets: derived, so that a repeated CreateToken or Join can show its secret again although
// only the hash is stored. secret = HMAC-SHA256(the market's 256-bit random key, what it is for).
#pragma once

#include <string>
#include <string_view>

#include "wire/hash.h"

namespace bmgpu::controld {

wire::Sha256Digest hmac_sha256(std::string_view key, std::string_view bytes);

// "bm1_<kind>_<64 hex digits>".
std::string token_text(std::string_view kind, const wire::Sha256Digest& secret);

}  // namespace bmgpu::controld
