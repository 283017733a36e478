// A server with a few methods to talk to, on a free port.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "api/raw_client.h"
#include "api/server.h"

namespace bmgpu::api {

// Tokens "good" (token 1), "other" (token 2).
Result<Identity> authenticate_for_test(std::string_view bearer);

// Retries `holds` until it is true; false after 20 s.
template <typename Condition>
bool eventually(Condition holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

class ServerFixture : public ::testing::Test {
 protected:
  // test.Echo/Say answers the body; test.Echo/Key the idempotency key; test.Echo/Fail NotFound;
  // test.Echo/Drop nothing; test.Echo/Hold keeps the replier in held_.
  void serve(ServerLimits limits = {}, std::optional<TlsFiles> tls = {});
  virtual void add_routes(Server& server) { static_cast<void>(server); }
  void TearDown() override;
  std::size_t held_count();

  std::unique_ptr<Server> server_;
  std::string address_ = "127.0.0.1";  // where serve() listens
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Replier>> held_;
};

}  // namespace bmgpu::api
