// Digest: a 64-bit running hash (FNV-1a over little-endian bytes) that names a state, so that two
// runs can be compared. Not for security. Deterministic across machines.
#pragma once

#include <cstdint>
#include <string_view>

namespace bmgpu {

class Digest {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ = (state_ ^ ((value >> (8 * byte)) & 0xff)) * kPrime;
    }
  }
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  // Length first, so that ("a","bc") and ("ab","c") differ.
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * kPrime;
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  static constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a, 64 bit
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace bmgpu
