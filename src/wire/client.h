// A client of one market: Connect calls, server streams and WebSockets over one TLS-pinned or
// loopback address. Used by bmcli and bm-agent.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace google::protobuf {
class Message;
}

namespace bmgpu::wire {

struct Endpoint {
  // "https://host:port", or "http://host:port" where host is this machine. Nothing behind the port.
  std::string url;
  // Hex SHA-256 of the market's CA certificate (DER). The server's certificate must be issued by it
  // and name the host; no other CA counts. Empty only for http.
  std::string ca_sha256;
  std::string bearer;  // token; sent in the Authorization header only
};

// The SHA-256 of the CA that the server at an https URL shows, unchecked: for a person to compare.
Result<std::string> shown_ca_sha256(const std::string& url, std::chrono::milliseconds timeout);

// Blocking; one object per thread. Keeps its connection between calls and reconnects once when an
// idle one was closed. Errors carry the server's code and message; not reachable = Unavailable.
class Client {
 public:
  static Result<std::unique_ptr<Client>> create(Endpoint endpoint);
  virtual ~Client() = default;

  // POST /<method>, binary protobuf. `idempotency_key` empty = header absent.
  virtual Result<void> call(std::string_view method, const google::protobuf::Message& request,
                            google::protobuf::Message& response,
                            std::string_view idempotency_key = {},
                            std::chrono::milliseconds timeout = std::chrono::seconds(30)) = 0;

  // Server stream: `on_message` gets each message's bytes (keep-alives, which are empty messages,
  // are not passed on); returning false ends the stream with success.
  // Ends with the server's outcome, or Unavailable if the connection broke or was silent for 45 s.
  virtual Result<void> stream(std::string_view method, const google::protobuf::Message& request,
                              const std::function<bool(std::string_view bytes)>& on_message) = 0;

  // PUT and GET of "/blobs/<sha256>". `on_progress` may be empty. get_file writes `file` whole and
  // synced or not at all, and refuses content of another hash as DataLoss.
  virtual Result<void> put_file(std::string_view path, const std::string& file,
                                const std::function<void(std::size_t sent)>& on_progress) = 0;
  virtual Result<void> get_file(std::string_view path, const std::string& file) = 0;
};

// A WebSocket with a thread of its own. Callbacks run on that thread. Thread-safe.
class WebSocketClient {
 public:
  struct Callbacks {
    std::function<void(std::string message)> on_message;
    std::function<void(Error why)> on_closed;  // once; nothing follows
  };
  // Connects and upgrades before it returns, within `timeout`. The server is pinged every 15 s and
  // gone after 30 s of silence. Messages: at most 16 MiB.
  static Result<std::unique_ptr<WebSocketClient>> connect(const Endpoint& endpoint,
                                                          std::string_view method,
                                                          Callbacks callbacks,
                                                          std::chrono::milliseconds timeout);
  virtual ~WebSocketClient() = default;        // closes and joins. REQUIRES: not within a callback
  virtual bool send(std::string message) = 0;  // false once closed; never waits
  virtual void close() = 0;
  virtual std::size_t queued_bytes() const = 0;
};

}  // namespace bmgpu::wire
