#include "api/listener.h"

#include <boost/asio/ip/address.hpp>

#include "api/http_session.h"
#include "api/tls_context.h"

namespace bmgpu::api {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kBacklog = 1024;

Error cannot_listen(const ListenerOptions& options, const error_code& why) {
  return Error{ErrorCode::Unavailable, "cannot listen on " + options.address + " port " +
                                           std::to_string(options.port) + ": " + why.message()};
}

// Tells a client that is one too many, if that takes no waiting.
void refuse(boost::asio::basic_stream_socket<tcp, asio::io_context::executor_type>& socket) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
      "Connection: close\r\nRetry-After: 1\r\nContent-Length: 98\r\n\r\n"
      "{\"code\":\"resource_exhausted\",\"message\":\"the server has as many connections as it "
      "may have; retry\"}";
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kAnswer), ignored);
  socket.shutdown(tcp::socket::shutdown_both, ignored);
}

}  // namespace

Listener::Listener(Edge& edge) : edge_(edge), acceptor_(edge.io()), pause_(edge.io()) {}

Result<std::unique_ptr<Listener>> Listener::open(Edge& edge, const ListenerOptions& options) {
  auto listener = std::make_unique<Listener>(edge);
  if (options.tls) {
    Result<asio::ssl::context> context = make_tls_context(*options.tls);
    if (!context.ok()) {
      return context.error();
    }
    listener->tls_.emplace(std::move(*context));
  }
  const Result<void> bound = listener->bind(options);
  if (!bound.ok()) {
    return bound.error();
  }
  return listener;
}

Result<void> Listener::bind(const ListenerOptions& options) {
  error_code failed;
  const auto address = asio::ip::make_address(options.address, failed);
  if (failed) {
    return Error{ErrorCode::InvalidArgument,
                 "'" + options.address + "' is no IPv4 or IPv6 address to listen on"};
  }
  if (!tls_ && !address.is_loopback()) {
    return Error{ErrorCode::InvalidArgument,
                 "a listener on " + options.address +
                     " needs TLS: without it only loopback addresses (127.0.0.1, ::1) are allowed"};
  }
  const tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol(), failed);
  if (!failed) {
    acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
  }
  if (!failed) {
    acceptor_.bind(endpoint, failed);
  }
  if (!failed) {
    acceptor_.listen(kBacklog, failed);
  }
  return failed ? Result<void>(cannot_listen(options, failed)) : Result<void>();
}

std::uint16_t Listener::port() const {
  error_code failed;
  const tcp::endpoint endpoint = acceptor_.local_endpoint(failed);
  check(!failed, "listener: a bound socket has no address");
  return endpoint.port();
}

void Listener::start() { accept(); }

void Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Listener::accept() {
  acceptor_.async_accept([this](const error_code& failed, Socket socket) {
    if (!acceptor_.is_open()) {
      return;
    }
    if (failed == asio::error::connection_aborted || failed == asio::error::try_again) {
      accept();
      return;
    }
    if (failed) {
      // No descriptor or memory left. Connections that end give some back; asking again at once
      // would only burn the processor.
      ++edge_.counters().accept_errors;
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](const error_code&) {
        if (acceptor_.is_open()) {
          accept();
        }
      });
      return;
    }
    take(std::move(socket));
    accept();
  });
}

void Listener::take(Socket socket) {
  if (edge_.full()) {
    ++edge_.counters().refused;
    if (!tls_) {
      refuse(socket);
    }
    return;
  }
  error_code failed;
  const tcp::endpoint peer = socket.remote_endpoint(failed);
  if (failed) {
    return;  // gone already
  }
  socket.set_option(tcp::no_delay(true), failed);
  ++edge_.counters().accepted;
  const std::uint64_t number = edge_.next_connection();
  wire::FlexStream stream =
      tls_ ? wire::FlexStream(std::move(socket), *tls_) : wire::FlexStream(std::move(socket));
  auto session =
      std::make_shared<HttpSession>(edge_, number, std::move(stream), peer.address().to_string());
  edge_.put(number, session);
  session->start();
}

}  // namespace bmgpu::api
