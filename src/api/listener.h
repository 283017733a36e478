// One listening socket. Survives a shortage of file descriptors or memory: it pauses and goes on.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "api/edge.h"

namespace bmgpu::api {

class Listener {
 public:
  static Result<std::unique_ptr<Listener>> open(Edge& edge, const ListenerOptions& options);

  explicit Listener(Edge& edge);
  std::uint16_t port() const;
  void start();
  void close();

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp,
                                                      boost::asio::io_context::executor_type>;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp,
                                                  boost::asio::io_context::executor_type>;

  Result<void> bind(const ListenerOptions& options);
  void accept();
  void take(Socket socket);

  Edge& edge_;
  Acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::optional<boost::asio::ssl::context> tls_;
};

}  // namespace bmgpu::api
