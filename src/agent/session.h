// The agent's session with bmd: one WebSocket, connected anew whenever it breaks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "wire/client.h"

namespace bmgpu::v1 {
class AgentFrame;
class MarketFrame;
}  // namespace bmgpu::v1
namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

class EventLoop;

// Tries again after 0.1 s at first and 5 s at most. send(), queued_bytes() and connected() may be
// called from any thread; callbacks run on the loop, in order; those of a connection that is gone
// come before on_closed of it and never after.
class Session {
 public:
  struct Callbacks {
    std::function<void()> on_open;
    std::function<void(const v1::MarketFrame&)> on_frame;
    std::function<void()> on_closed;
  };
  // Frames that wait for the network, together; beyond it send() says false. (Documented limit.)
  static constexpr std::size_t kQueuedBytesMax = 8 * 1024 * 1024;

  // `loop` and `log` must outlive it. Callbacks posted before the destructor may run after it only
  // if the loop still runs: end the loop first.
  Session(EventLoop& loop, wire::Endpoint endpoint, wire::Log& log, Callbacks callbacks);
  ~Session();  // closes
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // False: not connected, or too much waits; the frame is dropped.
  bool send(const v1::AgentFrame& frame);
  bool connected() const;
  std::size_t queued_bytes() const;
  // Why there is no connection; empty while there is one.
  std::string failure() const;

 private:
  void keep_connected();
  // Waits for the end of the connection; false: the session ends.
  bool connect_once();
  void deliver(std::uint64_t connection, const std::string& message);

  EventLoop& loop_;
  const wire::Endpoint endpoint_;
  wire::Log& log_;
  const Callbacks callbacks_;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::unique_ptr<wire::WebSocketClient> socket_;
  std::uint64_t connection_ = 0;
  bool closed_ = true;  // the current connection has ended
  bool stopping_ = false;
  std::string failure_ = "not connected yet";

  // Of the loop's thread: whose frames are delivered, and those of one that is not open yet.
  std::uint64_t open_connection_ = 0;
  std::vector<std::pair<std::uint64_t, std::string>> early_;
  std::thread thread_;
};

}  // namespace bmgpu::agent
