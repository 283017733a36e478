#include "api/edge.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "api/blob_store.h"
#include "api/listener.h"

namespace bmgpu::api {
namespace {

constexpr std::chrono::milliseconds kStopGrace{2'000};

// Deadlines are checked in rounds over all connections: often enough for the shortest of them, and
// far cheaper than a timer per connection that is set anew on every request.
std::chrono::milliseconds tick_interval(const ServerLimits& limits) {
  const auto shortest = std::min(
      {limits.request_timeout, limits.answer_timeout, limits.idle_timeout, limits.keep_alive});
  return std::clamp(shortest / 8, std::chrono::milliseconds(5), std::chrono::milliseconds(250));
}

bool same_word(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() &&
         std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
         });
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(ServerLimits limits, Authenticate authenticate) {
  return std::unique_ptr<Server>(std::make_unique<Edge>(limits, std::move(authenticate)));
}

Edge::Edge(ServerLimits limits, Authenticate authenticate)
    : limits_(limits),
      authenticate_(std::move(authenticate)),
      outbox_(
          std::make_shared<Outbox>([this] { boost::asio::post(io_, [this] { deliver_all(); }); })),
      ticker_(io_),
      tick_interval_(tick_interval(limits)),
      now_(std::chrono::steady_clock::now()) {}

Edge::~Edge() {
  stop();
  outbox_->close();
}

void Edge::add_route(std::string path, Route route) {
  check(!started_, "server: a route was added after start()");
  check(routes_.emplace(std::move(path), std::move(route)).second, "server: two routes, one path");
}

void Edge::unary(std::string method, UnaryHandler handler) {
  add_route("/" + method, std::move(handler));
}
void Edge::stream(std::string method, StreamHandler handler) {
  add_route("/" + method, std::move(handler));
}
void Edge::socket(std::string method, SocketOpener opener) {
  add_route("/" + method, std::move(opener));
}
void Edge::page(std::string path, PageHandler handler) {
  add_route(std::move(path), std::move(handler));
}

Result<std::uint16_t> Edge::listen(const ListenerOptions& options) {
  check(!started_, "server: listen() after start()");
  Result<std::unique_ptr<Listener>> listener = Listener::open(*this, options);
  if (!listener.ok()) {
    return listener.error();
  }
  const std::uint16_t port = (*listener)->port();
  listeners_.push_back(std::move(*listener));
  return port;
}

void Edge::start() {
  check(!started_, "server: started twice");
  started_ = true;
  for (const auto& listener : listeners_) {
    listener->start();
  }
  tick();
  thread_ = std::thread([this] { io_.run(); });
}

void Edge::stop() {
  if (!thread_.joinable()) {
    return;
  }
  boost::asio::post(io_, [this] { begin_stop(); });
  thread_.join();
}

void Edge::begin_stop() {
  stopping_ = true;
  stop_deadline_ = std::chrono::steady_clock::now() + kStopGrace;
  for (const auto& listener : listeners_) {
    listener->close();
  }
  const auto snapshot = connections_;  // drain() removes idle ones from the table
  for (const auto& [number, connection] : snapshot) {
    connection->drain();
  }
  ticker_.cancel();  // the next tick checks whether anything is left
}

void Edge::tick() {
  now_ = std::chrono::steady_clock::now();
  const auto snapshot = connections_;  // tick() and close() change the table
  for (const auto& [number, connection] : snapshot) {
    if (stopping_ && now_ >= stop_deadline_) {
      connection->close();
    } else {
      connection->tick(now_);
    }
  }
  if (stopping_ && connections_.empty()) {
    return;  // nothing is pending any more: run() returns
  }
  ticker_.expires_at(now_ + tick_interval_);
  ticker_.async_wait([this](const boost::system::error_code&) { tick(); });
}

void Edge::deliver_all() {
  now_ = std::chrono::steady_clock::now();
  outbox_->take(deliveries_);
  for (Delivery& delivery : deliveries_) {
    const auto found = connections_.find(delivery.connection);
    if (found != connections_.end()) {
      const std::shared_ptr<Connection> connection = found->second;
      connection->deliver(std::move(delivery));
    }
  }
  deliveries_.clear();
}

const Route* Edge::find(std::string_view path) const {
  const auto found = routes_.find(path);
  return found == routes_.end() ? nullptr : &found->second;
}

Result<Identity> Edge::authenticate(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer";
  if (authorization.empty()) {
    return Error{ErrorCode::Unauthenticated,
                 "no token: send the header \"Authorization: Bearer TOKEN\""};
  }
  const std::size_t blank = authorization.find(' ');
  if (blank == std::string_view::npos || !same_word(authorization.substr(0, blank), kScheme) ||
      blank + 1 == authorization.size()) {
    return Error{ErrorCode::Unauthenticated, "the Authorization header must be \"Bearer TOKEN\""};
  }
  return authenticate_(authorization.substr(blank + 1));
}

void Edge::put(std::uint64_t number, std::shared_ptr<Connection> connection) {
  connections_[number] = std::move(connection);
  counters_.connections = connections_.size();
}

void Edge::remove(std::uint64_t number) {
  connections_.erase(number);
  counters_.connections = connections_.size();
  if (stopping_ && connections_.empty()) {
    ticker_.cancel();  // the last one: stop now, not at the next tick
  }
}

bool Edge::take_stream(std::uint64_t token) {
  std::size_t& count = streams_by_token_[token];
  if (count >= limits_.streams_per_token_max) {
    return false;
  }
  ++count;
  ++counters_.streams;
  return true;
}

void Edge::give_stream(std::uint64_t token) {
  const auto found = streams_by_token_.find(token);
  check(found != streams_by_token_.end(), "server: a stream was returned twice");
  if (--found->second == 0) {
    streams_by_token_.erase(found);
  }
  --counters_.streams;
}

ServerStats Edge::stats() const {
  return ServerStats{counters_.connections, counters_.streams,   counters_.accepted,
                     counters_.refused,     counters_.timed_out, counters_.accept_errors,
                     counters_.requests};
}

void Edge::drop_token(std::uint64_t token) {
  boost::asio::post(io_, [this, token] {
    const auto snapshot = connections_;
    for (const auto& [number, connection] : snapshot) {
      connection->drop_token(token);
    }
  });
}

}  // namespace bmgpu::api
