// A client that sends exactly the bytes it is told, so that tests can be rude.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace bmgpu::api {

struct RawResponse {
  int status = 0;                              // 0: the connection ended before a whole response
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port);  // connects to 127.0.0.1
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  // False once the peer does not take it.
  bool send(std::string_view bytes);
  // Reads one response with a Content-Length, or chunked (the chunks' content joined).
  RawResponse read_response(bool head_only = false);
  std::string read_some();  // what arrives next; empty at the end
  bool closed_by_peer();    // reads until the end; false if it takes over 20 s
  void shutdown_send();
  int fd() const { return fd_; }

  RawResponse call(std::string_view bytes) {
    send(bytes);
    return read_response();
  }

 private:
  bool fill();
  bool read_chunks(RawResponse& response);

  int fd_;
  bool connected_;
  std::string held_;
};

// "POST /method HTTP/1.1" with Host, Content-Length, token and the given header lines.
std::string post(std::string_view method, std::string_view body, std::string_view content_type,
                 std::string_view token = "good", std::string_view header_lines = {});

}  // namespace bmgpu::api
