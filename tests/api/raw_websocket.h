// WebSocket frames by hand over a RawClient.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/raw_client.h"

namespace bmgpu::api {

// The upgrade request, with more header lines if wanted.
std::string upgrade_request(std::string_view method, std::string_view token = "good",
                            std::string_view header_lines = {});

// One masked frame of a client. `first_byte` is FIN and opcode: 0x82 = a whole binary message.
std::string frame(std::uint8_t first_byte, std::string_view payload);

// The head of a masked frame that announces `size` bytes which never come.
std::string frame_head(std::uint8_t first_byte, std::uint64_t size);

struct RawFrame {
  int opcode = -1;  // -1: the connection ended
  std::string payload;
};

// Reads unmasked frames of a server.
class FrameReader {
 public:
  explicit FrameReader(RawClient& client) : client_(client) {}
  RawFrame next();

 private:
  bool need(std::size_t size);

  RawClient& client_;
  std::string held_;
};

// The code of a close frame's payload, 0 if there is none.
int close_code(const RawFrame& frame);

}  // namespace bmgpu::api
