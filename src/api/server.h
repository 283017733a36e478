// The HTTP edge: HTTP/1.1 and WebSocket listeners on Boost.Beast, TLS by OpenSSL, the Connect
// protocol, authentication, limits. It knows methods and bytes, never the market.
//
// Threads: one edge thread per Server. Handlers are called on it and must not block; whatever
// answers later does so from any thread through the thread-safe objects they were given.
// Ownership: Server owns connections; Replier, Stream and Socket are shared handles that outlive
// their connection harmlessly (sending into a closed one is a no-op).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "wire/encoding.h"

namespace bmgpu::api {

enum class Role { Tenant, Owner, Operator, NodeJoin, Node };

struct Identity {
  std::uint64_t token = 0;  // id of the token, for audit
  AccountId account;
  Role role = Role::Tenant;
  NodeId node;  // NodeJoin, Node
};

// Documented in docs/reference/limits.md.
struct ServerLimits {
  std::size_t header_bytes_max = 16 * 1024;
  std::size_t body_bytes_max = 4 * 1024 * 1024;
  std::size_t blob_bytes_max = std::size_t{1} << 30;
  std::size_t frame_bytes_max = 4 * 1024 * 1024;  // one WebSocket message
  std::size_t connections_max = 4096;
  std::size_t streams_per_token_max = 64;              // streams and WebSockets
  std::size_t send_queue_bytes_max = 8 * 1024 * 1024;  // per stream or socket; beyond it is closed
  std::size_t bytes_per_second_min = 16 * 1024;  // of blobs and answers; slower ones are closed
  std::chrono::milliseconds request_timeout{10'000};  // headers and body must be there by then
  std::chrono::milliseconds answer_timeout{
      60'000};  // a handler's answer; Connect-Timeout-Ms lowers it
  std::chrono::milliseconds idle_timeout{75'000};  // keep-alive connection without a request
  std::chrono::milliseconds keep_alive{15'000};    // on streams and WebSockets
};

// Since the start, for /metrics. *_total only grow.
struct ServerStats {
  std::uint64_t connections = 0;
  std::uint64_t streams = 0;  // streams and WebSockets
  std::uint64_t connections_accepted_total = 0;
  std::uint64_t connections_refused_total = 0;  // over connections_max
  std::uint64_t connections_timed_out_total = 0;
  std::uint64_t accept_errors_total = 0;  // no file descriptor or memory left
  std::uint64_t requests_total = 0;
};

struct TlsFiles {
  std::string certificate;  // PEM chain
  std::string key;          // PEM
};

struct ListenerOptions {
  std::string address = "127.0.0.1";  // IPv4 or IPv6 literal
  std::uint16_t port = 0;             // 0 = any free one
  std::optional<TlsFiles> tls;        // absent: plain, only on a loopback address
};

struct Request {
  Identity caller;
  std::string method;  // "bmgpu.v1.Market/PlaceOrder"
  std::string body;    // as received
  wire::Encoding encoding = wire::Encoding::Proto;
  std::string idempotency_key;  // empty = the header was absent
  std::string peer;             // address, for audit
};

// Answers one unary request, once. Thread-safe. Dropping it unanswered answers Internal.
class Replier {
 public:
  virtual ~Replier() = default;
  virtual void reply(Result<std::string> body) = 0;  // body in the request's encoding
};

// One server stream. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  // False once the client is gone or too slow (send queue over its limit).
  virtual bool send(std::string message) = 0;
  virtual void finish(Result<void> outcome) = 0;
  virtual bool closed() const = 0;
  virtual std::size_t queued_bytes() const = 0;  // not yet handed to the kernel
};

// One WebSocket with binary messages. Thread-safe.
class Socket {
 public:
  virtual ~Socket() = default;
  virtual bool send(std::string message) = 0;  // false once it is gone or too slow
  virtual void close(std::string_view reason) = 0;
  virtual std::size_t queued_bytes() const = 0;  // not yet handed to the kernel
  // Stops and restarts reading, so that a sender faster than the other side waits in TCP.
  virtual void pause() = 0;
  virtual void resume() = 0;
};
struct SocketHandler {
  std::function<void(std::string message)> on_message;  // edge thread
  std::function<void()> on_closed;                      // edge thread, once
};

// How much each account may store. Called on the thread that stores.
class BlobQuota {
 public:
  using Rename = std::function<Result<void>()>;
  virtual ~BlobQuota() = default;
  // A file of `account` begins to be received, and gets `bytes` more. An error: the upload fails
  // with it, and what was refused is not counted.
  virtual Result<void> begin(AccountId account) = 0;
  virtual Result<void> grow(AccountId account, std::uint64_t bytes) = 0;
  // The file is complete: `rename` makes it visible under `name`. From now on it is the account's;
  // an error: it is dropped next.
  virtual Result<void> keep(AccountId account, const std::string& name, std::uint64_t bytes,
                            const Rename& rename) = 0;
  // A file that began is not kept; `bytes` of it were counted.
  virtual void drop(AccountId account, std::uint64_t bytes) = 0;
};

class Server {
 public:
  // Called for each request's bearer token on the edge thread. Must not block.
  using Authenticate = std::function<Result<Identity>(std::string_view bearer)>;
  using UnaryHandler = std::function<void(Request, std::shared_ptr<Replier>)>;
  using StreamHandler = std::function<void(Request, std::shared_ptr<Stream>)>;
  using SocketOpener =
      std::function<Result<SocketHandler>(const Identity&, std::shared_ptr<Socket>)>;

  // Plain pages without authentication: /healthz, /readyz, /metrics.
  struct Page {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };
  using PageHandler = std::function<Page()>;

  // Blobs: PUT stores a file whose SHA-256 is its name, GET sends it.
  struct Blobs {
    std::string directory;  // files by lower-case hex name; partial uploads in directory/tmp
    std::function<bool(const Identity&)> may_put, may_get;
    BlobQuota* quota = nullptr;  // outlives the server; none: no limits
  };

  static Result<std::unique_ptr<Server>> create(ServerLimits limits, Authenticate authenticate);
  virtual ~Server() = default;

  // REQUIRES: all before start().
  virtual void unary(std::string method, UnaryHandler handler) = 0;
  virtual void stream(std::string method, StreamHandler handler) = 0;
  virtual void socket(std::string method, SocketOpener opener) = 0;
  virtual void page(std::string path, PageHandler handler) = 0;
  virtual void blobs(Blobs blobs) = 0;
  // A listener that is not loopback and has no TLS is InvalidArgument. Returns the bound port.
  virtual Result<std::uint16_t> listen(const ListenerOptions& options) = 0;

  // Thread-safe.
  virtual ServerStats stats() const = 0;
  // Ends every stream and WebSocket of a revoked token. Thread-safe; takes effect soon.
  virtual void drop_token(std::uint64_t token) = 0;

  virtual void start() = 0;  // starts the edge thread
  virtual void stop() = 0;   // closes listeners, lets answers in flight go out (≤ 2 s), joins
};

}  // namespace bmgpu::api
