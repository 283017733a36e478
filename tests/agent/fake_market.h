// The market's edge as a node sees it, played by the test.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/server.h"

namespace bmgpu::agent {

// Listens on a free loopback port. Any bearer is a node's. Thread-safe.
class FakeMarket {
 public:
  // One WebSocket of an agent or guard.
  struct Connection {
    std::shared_ptr<api::Socket> socket;
    std::string bearer;
    bool closed = false;
  };
  // Called on the server's thread with each message.
  using OnMessage =
      std::function<void(std::size_t connection, api::Socket& socket, const std::string& message)>;

  FakeMarket(const std::string& method, OnMessage on_message);
  ~FakeMarket();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<Connection> connections() const;
  // Waits until `holds` (asked after every event), at most 10 s.
  bool wait_until(const std::function<bool()>& holds);
  // Lets wait_until() ask again.
  void touch() { changed_.notify_all(); }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string last_bearer_;
  std::vector<Connection> connections_;
  std::uint16_t port_ = 0;
  std::unique_ptr<api::Server> server_;
};

}  // namespace bmgpu::agent
