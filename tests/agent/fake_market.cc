#include "agent/fake_market.h"

#include <stdexcept>

namespace bmgpu::agent {

FakeMarket::FakeMarket(const std::string& method, OnMessage on_message) {
  Result<std::unique_ptr<api::Server>> server =
      api::Server::create({}, [this](std::string_view bearer) -> Result<api::Identity> {
        const std::lock_guard lock(mutex_);
        last_bearer_ = bearer;
        api::Identity identity;
        identity.role = api::Role::Node;
        identity.node = NodeId(1);
        return identity;
      });
  if (!server) {
    throw std::runtime_error(server.error().message);
  }
  server_ = std::move(*server);
  server_->socket(
      method,
      [this, on_message](const api::Identity&,
                         std::shared_ptr<api::Socket> socket) -> Result<api::SocketHandler> {
        std::size_t number = 0;
        {
          const std::lock_guard lock(mutex_);
          number = connections_.size();
          connections_.push_back({socket, last_bearer_, false});
        }
        changed_.notify_all();
        api::SocketHandler handler;
        handler.on_message = [this, on_message, number, socket](const std::string& message) {
          on_message(number, *socket, message);
          changed_.notify_all();
        };
        handler.on_closed = [this, number] {
          {
            const std::lock_guard lock(mutex_);
            connections_[number].closed = true;
          }
          changed_.notify_all();
        };
        return handler;
      });
  const Result<std::uint16_t> port = server_->listen({});
  if (!port) {
    throw std::runtime_error(port.error().message);
  }
  port_ = *port;
  server_->start();
}

FakeMarket::~FakeMarket() { server_->stop(); }

std::vector<FakeMarket::Connection> FakeMarket::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

bool FakeMarket::wait_until(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!holds()) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::milliseconds(10)) == std::cv_status::timeout &&
        std::chrono::steady_clock::now() > deadline) {
      return false;
    }
  }
  return true;
}

}  // namespace bmgpu::agent
