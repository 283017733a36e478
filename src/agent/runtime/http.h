// HTTP/1.1 over a unix socket, just what libpod speaks: one request at a time, bodies by length,
// chunks or end of stream, and the upgrade to raw bytes. Blocking calls with a deadline each.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "agent/runtime/files.h"
#include "base/result.h"

namespace bmgpu::agent {

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query
  std::string body;
  std::string content_type = "application/json";
  bool upgrade = false;  // ask for raw bytes; 101 and 200 mean yes
};

struct HttpResponse {
  int status = 0;
  std::string body;  // empty after an upgrade and with a body callback
};

// "/a b" to "%2Fa%20b": for a path segment or a query value.
std::string url_encode(std::string_view text);

// Not thread-safe. After an error the connection is closed and may not be used again.
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  using OnBody = std::function<void(std::string_view)>;
  static constexpr std::size_t kHeadBytesMax = 64 * 1024;
  static constexpr std::size_t kBodyBytesMax = 64 * 1024 * 1024;

  // Unavailable if nobody listens; DeadlineExceeded if somebody does and takes no connection.
  static Result<HttpConnection> connect(const std::string& socket, Clock::time_point deadline);

  // From now on every wait ends with DeadlineExceeded soon after `cancel` became true. It must
  // outlive the connection.
  void cancel_by(const std::atomic<bool>& cancel) { cancel_ = &cancel; }

  // Sends and receives. DeadlineExceeded if the whole answer is not there in time.
  // With `on_body` the body goes there piece by piece and may be of any length.
  Result<HttpResponse> exchange(const HttpRequest& request, Clock::time_point deadline,
                                const OnBody& on_body = nullptr);

  // The two halves, for bodies that are sent in pieces (chunked; see send_chunk).
  Result<void> send_head(const HttpRequest& request, Clock::time_point deadline, bool chunked);
  Result<void> send_chunk(std::string_view bytes, Clock::time_point deadline);  // empty = the end
  Result<HttpResponse> receive(Clock::time_point deadline, const OnBody& on_body = nullptr);

  // After an upgrade (status 101, or less than 300): the raw socket, not blocking, and bytes that
  // came with the head.
  int fd() const { return fd_.get(); }
  std::string take_rest() { return std::move(buffer_); }

 private:
  explicit HttpConnection(Fd fd) : fd_(std::move(fd)) {}
  Result<void> wait_for(short events, Clock::time_point deadline) const;
  Result<void> send_all(std::string_view bytes, Clock::time_point deadline);
  Result<std::size_t> fill(Clock::time_point deadline);  // 0 = end of the stream
  Result<std::string> read_line(Clock::time_point deadline);
  Result<void> read_exactly(std::size_t count, Clock::time_point deadline, const OnBody& sink);
  Result<void> read_chunks(Clock::time_point deadline, const OnBody& sink);

  Fd fd_;
  std::string buffer_;
  bool upgrade_ = false;
  const std::atomic<bool>* cancel_ = nullptr;
};

}  // namespace bmgpu::agent
