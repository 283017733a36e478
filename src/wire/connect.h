// Framing of the Connect protocol (https://connectrpc.com/docs/protocol): content types, and the
// 5-byte envelopes of streams: one byte of flags, four of length (big-endian), then the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/encoding.h"

namespace bmgpu::wire {

inline constexpr std::size_t kEnvelopeBytes = 5;
inline constexpr std::uint8_t kFlagCompressed = 1;  // never sent, refused when received
inline constexpr std::uint8_t kFlagEndStream = 2;

// "application/json" and "application/proto", parameters such as "; charset=utf-8" allowed.
std::optional<Encoding> unary_encoding(std::string_view content_type);
// "application/connect+json" and "application/connect+proto".
std::optional<Encoding> stream_encoding(std::string_view content_type);
std::string_view unary_content_type(Encoding encoding);
std::string_view stream_content_type(Encoding encoding);

// Appends one envelope. REQUIRES: message.size() < 2^32.
void append_envelope(std::string& bytes, std::uint8_t flags, std::string_view message);

// The last envelope of a stream: flag EndStream and {} or {"error":{…}}.
std::string end_stream(const Result<void>& outcome);

// The outcome in an end-stream message.
Result<void> parse_end_stream(std::string_view json);

// The one message that a server stream's request holds; InvalidArgument if there is not exactly one
// uncompressed envelope.
Result<std::string> parse_stream_request(std::string_view body);

// Takes envelopes off a byte stream that arrives in pieces.
class EnvelopeReader {
 public:
  struct Envelope {
    std::uint8_t flags = 0;
    std::string message;
  };

  explicit EnvelopeReader(std::size_t message_bytes_max) : max_(message_bytes_max) {}
  void add(std::string_view bytes) { held_ += bytes; }
  // The next whole envelope, nothing if it is not there yet; ResourceExhausted if it is too large.
  Result<std::optional<Envelope>> next();
  bool empty() const { return held_.size() == taken_; }

 private:
  std::size_t max_;
  std::string held_;
  std::size_t taken_ = 0;  // bytes of held_ that were handed out
};

}  // namespace bmgpu::wire
