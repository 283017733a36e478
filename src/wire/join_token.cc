#include "wire/join_token.h"

#include "bmgpu/v1/agent.pb.h"
#include "wire/encoding.h"
#include "wire/hash.h"

namespace bmgpu::wire {
namespace {

constexpr std::string_view kPrefix = "bmj1.";
constexpr std::size_t kTextBytesMax = 4096;

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
  return std::string(kPrefix) + base64url(encode(Encoding::Json, token));
}

Result<v1::JoinToken> decode_join_token(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with(kPrefix)) {
    return refused("does not start with \"bmj1.\": this is some other text");
  }
  if (text.size() > kTextBytesMax) {
    return refused("is too long: something else was copied with it");
  }
  const Result<std::string> json = parse_base64url(text.substr(kPrefix.size()));
  v1::JoinToken token;
  if (!json.ok() || !decode(Encoding::Json, *json, token).ok()) {
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
