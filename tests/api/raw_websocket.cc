#include "api/raw_websocket.h"

namespace bmgpu::api {

std::string upgrade_request(std::string_view method, std::string_view token,
                            std::string_view header_lines) {
  std::string request = "GET /" + std::string(method) + " HTTP/1.1\r\nHost: t\r\n";
  request += "Authorization: Bearer " + std::string(token) + "\r\n";
  request += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  request += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + std::string(header_lines);
  return request + "\r\n";
}

std::string frame_head(std::uint8_t first_byte, std::uint64_t size) {
  std::string head(1, static_cast<char>(first_byte));
  if (size < 126) {
    head += static_cast<char>(0x80 | size);
  } else {
    const bool is_short = size < 65536;  // the shortest form is the only valid one
    head += static_cast<char>(0x80 | (is_short ? 126 : 127));
    for (int shift = is_short ? 8 : 56; shift >= 0; shift -= 8) {
      head += static_cast<char>((size >> shift) & 0xff);
    }
  }
  return head + std::string(4, '\0');  // a mask of zeros leaves the payload as it is
}

std::string frame(std::uint8_t first_byte, std::string_view payload) {
  return frame_head(first_byte, payload.size()) + std::string(payload);
}

bool FrameReader::need(std::size_t size) {
  while (held_.size() < size) {
    const std::string more = client_.read_some();
    if (more.empty()) {
      return false;
    }
    held_ += more;
  }
  return true;
}

RawFrame FrameReader::next() {
  if (!need(2)) {
    return {};
  }
  const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(held_[i]); };
  const int opcode = byte(0) & 15;
  std::size_t size = byte(1) & 127;
  std::size_t head = 2;
  const std::size_t length_bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (length_bytes > 0) {
    if (!need(head + length_bytes)) {
      return {};
    }
    size = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) {
      size = size << 8 | byte(head + i);
    }
    head += length_bytes;
  }
  if (!need(head + size)) {
    return {};
  }
  RawFrame found{opcode, held_.substr(head, size)};
  held_.erase(0, head + size);
  return found;
}

int close_code(const RawFrame& frame) {
  if (frame.opcode != 8 || frame.payload.size() < 2) {
    return 0;
  }
  return static_cast<unsigned char>(frame.payload[0]) << 8 |
         static_cast<unsigned char>(frame.payload[1]);
}

}  // namespace bmgpu::api
