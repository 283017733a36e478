#include "wire/hash.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

namespace bmgpu::wire {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(context_->evp != nullptr, "sha256: out of memory");
  check(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1, "sha256: no digest");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(std::string_view bytes) {
  check(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1, "sha256: update failed");
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest{};
  check(EVP_DigestFinal_ex(context_->evp, digest.data(), nullptr) == 1, "sha256: final failed");
  return digest;
}

Sha256Digest sha256(std::string_view bytes) {
  Sha256Digest digest{};
  check(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1,
        "sha256: digest failed");
  return digest;
}

std::string_view as_bytes(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

std::string hex(const Sha256Digest& digest) { return hex(as_bytes(digest)); }

Result<std::string> parse_hex(std::string_view text) {
  const Error refused{ErrorCode::InvalidArgument,
                      "not hexadecimal: an even number of digits 0-9 and a-f is needed"};
  if (text.size() % 2 != 0) {
    return refused;
  }
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = kHexDigits.find(text[i]);
    const std::size_t low = kHexDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return refused;
    }
    bytes += static_cast<char>((high << 4) | low);
  }
  return bytes;
}

std::string base64url(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      text += kBase64Digits[(bits >> held) & 63];
    }
  }
  if (held > 0) {
    text += kBase64Digits[(bits << (6 - held)) & 63];
  }
  return text;
}

Result<std::string> parse_base64url(std::string_view text) {
  const Error refused{ErrorCode::InvalidArgument, "not base64url (RFC 4648 §5, without padding)"};
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos) {
      return refused;
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>((bits >> held) & 0xff);
    }
  }
  // One text for one value: no lone digit, no stray bits after the last byte.
  if (held == 6 || (bits & ((1U << held) - 1)) != 0) {
    return refused;
  }
  return bytes;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  check(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
        "random_bytes: the operating system has none");
  return bytes;
}

}  // namespace bmgpu::wire
