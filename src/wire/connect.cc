#include "wire/connect.h"

#include <google/protobuf/struct.pb.h>

#include <limits>

#include "wire/errors.h"
#include "wire/json.h"

namespace bmgpu::wire {
namespace {

std::uint32_t envelope_length(std::string_view header) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kEnvelopeBytes; ++i) {
    length = (length << 8) | static_cast<unsigned char>(header[i]);
  }
  return length;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Media types are case-insensitive; what follows a ';' is a parameter.
bool same_media_type(std::string_view content_type, std::string_view expected) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ') || content_type.ends_with('\t')) {
    content_type.remove_suffix(1);
  }
  if (content_type.size() != expected.size()) {
    return false;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (lower(content_type[i]) != expected[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Encoding> unary_encoding(std::string_view content_type) {
  if (same_media_type(content_type, unary_content_type(Encoding::Proto))) {
    return Encoding::Proto;
  }
  if (same_media_type(content_type, unary_content_type(Encoding::Json))) {
    return Encoding::Json;
  }
  return std::nullopt;
}

std::optional<Encoding> stream_encoding(std::string_view content_type) {
  if (same_media_type(content_type, stream_content_type(Encoding::Proto))) {
    return Encoding::Proto;
  }
  if (same_media_type(content_type, stream_content_type(Encoding::Json))) {
    return Encoding::Json;
  }
  return std::nullopt;
}

std::string_view unary_content_type(Encoding encoding) {
  return encoding == Encoding::Proto ? "application/proto" : "application/json";
}

std::string_view stream_content_type(Encoding encoding) {
  return encoding == Encoding::Proto ? "application/connect+proto" : "application/connect+json";
}

void append_envelope(std::string& bytes, std::uint8_t flags, std::string_view message) {
  check(message.size() <= std::numeric_limits<std::uint32_t>::max(), "envelope: too large");
  const auto length = static_cast<std::uint32_t>(message.size());
  bytes += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((length >> shift) & 0xff);
  }
  bytes += message;
}

std::string end_stream(const Result<void>& outcome) {
  std::string bytes;
  append_envelope(bytes, kFlagEndStream,
                  outcome.ok() ? "{}" : "{\"error\":" + error_json(outcome.error()) + "}");
  return bytes;
}

Result<void> parse_end_stream(std::string_view json) {
  google::protobuf::Struct parsed;
  if (!decode(Encoding::Json, json, parsed).ok()) {
    return Error{ErrorCode::DataLoss, "the server ended the stream with a broken outcome"};
  }
  const auto error = parsed.fields().find("error");
  if (error == parsed.fields().end()) {
    return {};
  }
  const auto& fields = error->second.struct_value().fields();
  const auto code = fields.find("code");
  const auto message = fields.find("message");
  return Error{code == fields.end() ? ErrorCode::Internal
                                    : error_code_of_connect(code->second.string_value()),
               message == fields.end() ? "the server ended the stream with an error"
                                       : message->second.string_value()};
}

Result<std::string> parse_stream_request(std::string_view body) {
  const Error refused{ErrorCode::InvalidArgument,
                      "a stream's request is exactly one uncompressed Connect envelope (5 bytes of "
                      "flags and length, then the message)"};
  if (body.size() < kEnvelopeBytes || body[0] != 0 ||
      body.size() - kEnvelopeBytes != envelope_length(body)) {
    return refused;
  }
  return std::string(body.substr(kEnvelopeBytes));
}

Result<std::optional<EnvelopeReader::Envelope>> EnvelopeReader::next() {
  const std::string_view rest = std::string_view(held_).substr(taken_);
  if (rest.size() < kEnvelopeBytes) {
    held_.erase(0, taken_);
    taken_ = 0;
    return std::optional<Envelope>();
  }
  const std::size_t length = envelope_length(rest);
  if (length > max_) {
    return Error{ErrorCode::ResourceExhausted,
                 "a message of the stream is larger than " + std::to_string(max_) + " bytes"};
  }
  if (rest.size() < kEnvelopeBytes + length) {
    held_.erase(0, taken_);
    taken_ = 0;
    return std::optional<Envelope>();
  }
  taken_ += kEnvelopeBytes + length;
  return std::optional<Envelope>(Envelope{static_cast<std::uint8_t>(rest[0]),
                                          std::string(rest.substr(kEnvelopeBytes, length))});
}

}  // namespace bmgpu::wire
