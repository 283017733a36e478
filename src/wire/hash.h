// SHA-256 and the two text forms of bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::wire {

using Sha256Digest = std::array<std::uint8_t, 32>;

// A running hash. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void add(std::string_view bytes);
  Sha256Digest finish();  // once; nothing may be added afterwards

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256(std::string_view bytes);

// The digest's bytes, as protobuf fields hold it.
std::string_view as_bytes(const Sha256Digest& digest);

std::string hex(std::string_view bytes);  // lower case
std::string hex(const Sha256Digest& digest);
// Strict: an even number of lower-case hex digits, else InvalidArgument.
Result<std::string> parse_hex(std::string_view text);

std::string base64url(std::string_view bytes);  // RFC 4648 §5, without padding
Result<std::string> parse_base64url(std::string_view text);

// `count` bytes of the operating system's random source. For secrets.
std::string random_bytes(std::size_t count);

}  // namespace bmgpu::wire
