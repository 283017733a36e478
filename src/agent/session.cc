#include "agent/session.h"

#include <algorithm>

#include "agent/event_loop.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectLimit{5000};
constexpr milliseconds kRetryMin{100};
constexpr milliseconds kRetryMax{5000};
constexpr std::size_t kEarlyMax = 16;
constexpr const char* kMethod = "bmgpu.v1.Agent/Session";

}  // namespace

Session::Session(EventLoop& loop, wire::Endpoint endpoint, wire::Log& log, Callbacks callbacks)
    : loop_(loop), endpoint_(std::move(endpoint)), log_(log), callbacks_(std::move(callbacks)) {
  thread_ = std::thread([this] { keep_connected(); });
}

Session::~Session() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Session::keep_connected() {
  milliseconds retry = kRetryMin;
  while (true) {
    const auto started = std::chrono::steady_clock::now();
    if (!connect_once()) {
      return;
    }
    // A connection that lasted is no reason to be slow with the next one.
    const bool lasted = std::chrono::steady_clock::now() - started > 2 * kRetryMax;
    retry = lasted ? kRetryMin : std::min(retry * 2, kRetryMax);
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, retry, [this] { return stopping_; })) {
      return;
    }
  }
}

bool Session::connect_once() {
  std::uint64_t connection = 0;
  {
    const std::lock_guard lock(mutex_);
    connection = ++connection_;
    closed_ = false;
  }
  wire::WebSocketClient::Callbacks callbacks;
  callbacks.on_message = [this, connection](std::string message) {
    loop_.post([this, connection, message = std::move(message)] { deliver(connection, message); });
  };
  callbacks.on_closed = [this, connection](const Error& why) {
    {
      const std::lock_guard lock(mutex_);
      if (connection == connection_) {
        closed_ = true;
        failure_ = why.message;
      }
    }
    changed_.notify_all();
  };
  Result<std::unique_ptr<wire::WebSocketClient>> socket =
      wire::WebSocketClient::connect(endpoint_, kMethod, std::move(callbacks), kConnectLimit);
  std::unique_lock lock(mutex_);
  if (!socket) {
    if (failure_ != socket.error().message) {
      failure_ = socket.error().message;
      log_.warning("no session with the market",
                   {{"url", endpoint_.url}, {"why", socket.error().message}});
    }
    return !stopping_;
  }
  socket_ = std::move(*socket);
  failure_.clear();
  loop_.post([this, connection] {
    open_connection_ = connection;
    callbacks_.on_open();
    // What the market said before connect() had returned.
    for (const auto& [of, message] : std::exchange(early_, {})) {
      deliver(of, message);
    }
  });
  changed_.wait(lock, [this] { return closed_ || stopping_; });
  const std::unique_ptr<wire::WebSocketClient> ended = std::move(socket_);
  if (!stopping_) {
    log_.warning("the session with the market is cut off", {{"why", failure_}});
    loop_.post([this] { callbacks_.on_closed(); });
  }
  const bool stopping = stopping_;
  lock.unlock();  // destroying the socket joins its thread, which may be in on_closed
  return !stopping;
}

void Session::deliver(std::uint64_t connection, const std::string& message) {
  if (connection > open_connection_ && early_.size() < kEarlyMax) {
    early_.emplace_back(connection, message);
  }
  if (connection != open_connection_) {
    return;
  }
  v1::MarketFrame frame;
  if (!frame.ParseFromString(message)) {
    log_.error("the market sent a frame that cannot be read", {{"bytes", message.size()}});
    return;
  }
  callbacks_.on_frame(frame);
}

bool Session::send(const v1::AgentFrame& frame) {
  const std::lock_guard lock(mutex_);
  return socket_ != nullptr && !closed_ && socket_->queued_bytes() <= kQueuedBytesMax &&
         socket_->send(frame.SerializeAsString());
}

bool Session::connected() const {
  const std::lock_guard lock(mutex_);
  return socket_ != nullptr && !closed_;
}

std::size_t Session::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return socket_ == nullptr ? 0 : socket_->queued_bytes();
}

std::string Session::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace bmgpu::agent
