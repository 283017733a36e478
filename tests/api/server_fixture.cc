#include "api/server_fixture.h"

namespace bmgpu::api {

Result<Identity> authenticate_for_test(std::string_view bearer) {
  if (bearer == "good") {
    return Identity{1, AccountId(11), Role::Tenant, NodeId()};
  }
  if (bearer == "other") {
    return Identity{2, AccountId(12), Role::Node, NodeId(3)};
  }
  return Error{ErrorCode::Unauthenticated, "the token is unknown, expired or revoked"};
}

void ServerFixture::serve(ServerLimits limits, std::optional<TlsFiles> tls) {
  auto server = Server::create(limits, authenticate_for_test);
  ASSERT_TRUE(server.ok());
  server_ = std::move(*server);
  server_->unary("test.Echo/Say", [](Request request, std::shared_ptr<Replier> replier) {
    replier->reply(std::move(request.body));
  });
  server_->unary("test.Echo/Key", [](Request request, std::shared_ptr<Replier> replier) {
    replier->reply("[" + request.idempotency_key + "] account " +
                   std::to_string(request.caller.account.value()) + " from " + request.peer);
  });
  server_->unary("test.Echo/Fail", [](Request, std::shared_ptr<Replier> replier) {
    replier->reply(Error{ErrorCode::NotFound, "no such \"order\""});
  });
  server_->unary("test.Echo/Drop", [](Request, std::shared_ptr<Replier>) {});
  server_->unary("test.Echo/Hold", [this](Request, std::shared_ptr<Replier> replier) {
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(replier));
  });
  server_->page("/healthz", [] { return Server::Page{200, "text/plain; charset=utf-8", "ok\n"}; });
  server_->page("/readyz", [] { return Server::Page{503, "text/plain; charset=utf-8", "no\n"}; });
  add_routes(*server_);
  ListenerOptions options;
  options.address = address_;
  options.tls = std::move(tls);
  const auto port = server_->listen(options);
  ASSERT_TRUE(port.ok()) << port.error().message;
  port_ = *port;
  server_->start();
}

void ServerFixture::TearDown() {
  held_.clear();
  if (server_) {
    server_->stop();
  }
}

std::size_t ServerFixture::held_count() {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

}  // namespace bmgpu::api
