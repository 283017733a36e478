// The server behind server.h: the edge thread, its table of connections and its routes. Private to
// api; everything here runs on the edge thread unless it says otherwise.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "api/connection.h"
#include "api/outbox.h"
#include "api/server.h"

namespace bmgpu::api {

class BlobStore;
class Listener;

// Written by the edge thread, read by any.
struct Counters {
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> streams = 0;
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> timed_out = 0;
  std::atomic<std::uint64_t> accept_errors = 0;
  std::atomic<std::uint64_t> requests = 0;
};

using Route = std::variant<Server::UnaryHandler, Server::StreamHandler, Server::SocketOpener,
                           Server::PageHandler>;

class Edge final : public Server {
 public:
  Edge(ServerLimits limits, Authenticate authenticate);
  ~Edge() override;

  void unary(std::string method, UnaryHandler handler) override;
  void stream(std::string method, StreamHandler handler) override;
  void socket(std::string method, SocketOpener opener) override;
  void page(std::string path, PageHandler handler) override;
  void blobs(Blobs blobs) override;
  Result<std::uint16_t> listen(const ListenerOptions& options) override;
  void start() override;
  void stop() override;
  ServerStats stats() const override;
  void drop_token(std::uint64_t token) override;

  // Of the connections.
  const ServerLimits& limits() const { return limits_; }
  SteadyTime now() const { return now_; }  // read once per tick or delivery round
  const Route* find(std::string_view path) const;
  BlobStore* blob_store() { return blob_store_.get(); }
  Result<Identity> authenticate(std::string_view authorization);
  const std::shared_ptr<Outbox>& outbox() { return outbox_; }
  bool stopping() const { return stopping_; }
  boost::asio::io_context& io() { return io_; }
  Counters& counters() { return counters_; }

  // Of the listeners. `make` builds the connection with the number that it gets.
  bool full() const { return connections_.size() >= limits_.connections_max; }
  std::uint64_t next_connection() { return next_connection_++; }
  void put(std::uint64_t number, std::shared_ptr<Connection> connection);
  void remove(std::uint64_t number);

  // False if the token has as many streams and sockets as it may have.
  bool take_stream(std::uint64_t token);
  void give_stream(std::uint64_t token);

 private:
  void add_route(std::string path, Route route);
  void deliver_all();
  void tick();
  void begin_stop();

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  const ServerLimits limits_;
  const Authenticate authenticate_;
  boost::asio::io_context io_{1};  // one thread runs it
  std::shared_ptr<Outbox> outbox_;
  std::unordered_map<std::string, Route, Hash, std::equal_to<>> routes_;
  std::unique_ptr<BlobStore> blob_store_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::uint64_t, std::size_t> streams_by_token_;
  std::vector<Delivery> deliveries_;  // kept between rounds for its memory
  Counters counters_;
  boost::asio::steady_timer ticker_;
  std::chrono::milliseconds tick_interval_;
  SteadyTime now_;
  SteadyTime stop_deadline_;
  std::uint64_t next_connection_ = 1;
  bool started_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace bmgpu::api
