#include "wire/join_token.h"

#include <array>
#include <cstdint>

#include "bmgpu/v1/agent.pb.h"
#include "wire/encoding.h"

namespace bmgpu::wire {
namespace {

constexpr std::string_view kPrefix = "bmj1.";
constexpr std::size_t kTextBytesMax = 4096;
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string to_base64url(std::string_view bytes) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8 | static_cast<unsigned char>(c)) & 0xffffff;
    held += 8;
    while (held >= 6) {
      held -= 6;
      out += kAlphabet[bits >> held & 63];
    }
  }
  if (held > 0) {
    out += kAlphabet[bits << (6 - held) & 63];
  }
  return out;
}

// False if a character is outside the alphabet, or bits are left over that are not zero.
bool from_base64url(std::string_view text, std::string& bytes) {
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) {
      return false;
    }
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held & 255);
    }
  }
  return held < 6 && (bits & ((1u << held) - 1)) == 0;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Error refused(std::string_view why) {
  return Error{
      ErrorCode::InvalidArgument,
      "the join token " + std::string(why) +
          "; ask the market's operator for a new one (bmcli token create --role node-join)"};
}

}  // namespace

std::string encode_join_token(const v1::JoinToken& token) {
  return std::string(kPrefix) + to_base64url(encode(Encoding::Json, token));
}

Result<v1::JoinToken> decode_join_token(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with(kPrefix)) {
    return refused("does not start with \"bmj1.\": this is some other text");
  }
  std::string json;
  if (text.size() > kTextBytesMax || !from_base64url(text.substr(kPrefix.size()), json)) {
    return refused("is damaged: a part is missing or was changed when it was copied");
  }
  v1::JoinToken token;
  if (!decode(Encoding::Json, json, token)) {
    return refused("is damaged: a part is missing or was changed when it was copied");
  }
  if (token.url().empty() || token.heartbeat().empty() || token.node().empty() ||
      token.secret().empty()) {
    return refused("lacks its market's address, its node's name or its secret");
  }
  if (token.url().starts_with("https://") && token.ca_sha256().size() != 64) {
    return refused("does not hold the SHA-256 of its market's certificate authority");
  }
  return token;
}

}  // namespace bmgpu::wire
