#include "agent/runtime/engine_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "agent/runtime/http.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/service.h"

namespace bmgpu::agent {
namespace {

constexpr int kSliceMs = 20;
constexpr int kWaiting = 16;

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd one = {fd, POLLOUT, 0};
    ::poll(&one, 1, kSliceMs);
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  return true;
}

}  // namespace

EngineProxy::EngineProxy(v1::RuntimeFacts real, const std::string& run_dir, Plan plan)
    : real_(std::move(real)), plan_(std::move(plan)) {
  EXPECT_TRUE(make_dirs(run_dir).ok());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = run_dir + "/podman.sock";
  std::memcpy(address.sun_path, path.c_str(), path.size());
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener_.get(), kWaiting), 0);
  acceptor_ = std::thread([this] { accept_all(); });
}

EngineProxy::~EngineProxy() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& call : calls_) {
    call.join();
  }
}

void EngineProxy::accept_all() {
  while (!stopping_) {
    pollfd one = {listener_.get(), POLLIN, 0};
    ::poll(&one, 1, kSliceMs);
    const int client = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client >= 0) {
      calls_.emplace_back([this, client] { serve(client); });
    }
  }
}

bool EngineProxy::due(const std::string& head, Plan::Moment moment) const {
  const std::string path = head.substr(0, head.find(" HTTP/"));
  return plan_.moment == moment && kills_ < plan_.times && path.ends_with(plan_.call);
}

void EngineProxy::kill_service() {
  ++kills_;
  const Result<int> pid = service_pid(real_);
  if (pid.ok()) {
    ::kill(*pid, SIGKILL);
    EXPECT_TRUE(eventually([&] { return !service_pid(real_).ok(); }));
  }
}

// Relays both ways until one end closes; what the client says first is its whole request.
void EngineProxy::serve(int raw) {
  const Fd client(raw);
  std::string head;
  std::array<char, 65536> bytes;
  std::unique_ptr<HttpConnection> engine;
  while (!stopping_) {
    std::array<pollfd, 2> fds = {
        {{client.get(), POLLIN, 0}, {engine ? engine->fd() : -1, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), kSliceMs);
    if (fds[0].revents != 0) {
      const ssize_t n = ::recv(client.get(), bytes.data(), bytes.size(), 0);
      if (n <= 0) {
        return;
      }
      const std::string_view part(bytes.data(), static_cast<std::size_t>(n));
      head += head.empty() ? part : std::string_view();
      if (due(head, Plan::Moment::Unsent)) {
        kill_service();
        return;
      }
      if (!engine) {
        EXPECT_TRUE(ensure_service(real_, std::chrono::seconds(30)).ok());
        Result<HttpConnection> made = HttpConnection::connect(
            service_socket(real_), HttpConnection::Clock::now() + std::chrono::seconds(10));
        if (!made.ok()) {
          return;
        }
        engine = std::make_unique<HttpConnection>(std::move(*made));
      }
      send_all(engine->fd(), part);
      if (due(head, Plan::Moment::Sent)) {
        EXPECT_TRUE(eventually(plan_.when)) << head;
        kill_service();
        return;
      }
    }
    if (fds[1].revents != 0) {
      const ssize_t n = ::recv(engine->fd(), bytes.data(), bytes.size(), 0);
      if (n <= 0) {
        return;
      }
      if (due(head, Plan::Moment::Answered)) {
        kill_service();
        return;
      }
      send_all(client.get(), {bytes.data(), static_cast<std::size_t>(n)});
    }
  }
}

}  // namespace bmgpu::agent
