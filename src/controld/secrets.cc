#include "controld/secrets.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace bmgpu::controld {

wire::Sha256Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  wire::Sha256Digest digest{};
  unsigned int size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   bytes.size(), digest.data(), &size);
  check(done != nullptr, "HMAC-SHA-256 failed");
  check(size == digest.size(), "HMAC-SHA-256 has another size");
  return digest;
}

std::string token_text(std::string_view kind, const wire::Sha256Digest& secret) {
  return "bm1_" + std::string(kind) + "_" + wire::hex(secret);
}

}  // namespace bmgpu::controld
