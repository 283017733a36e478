// One byte stream type for plain TCP and for TLS, so that HTTP and WebSocket code is compiled once
// for both. Heavy to include: only for source files that do network I/O.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <utility>
#include <variant>

namespace bmgpu::wire {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

// The executor is a fixed type: no type erasure on each operation.
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;

// Meets Beast's AsyncStream. Not thread-safe; movable while no operation is pending.
class FlexStream {
 public:
  using executor_type = asio::io_context::executor_type;
  using Tls = asio::ssl::stream<TcpSocket>;

  explicit FlexStream(TcpSocket socket) : stream_(std::move(socket)) {}
  FlexStream(TcpSocket socket, asio::ssl::context& context)
      : stream_(std::in_place_type<Tls>, std::move(socket), context) {}

  executor_type get_executor() { return socket().get_executor(); }
  Tls* tls() { return std::get_if<Tls>(&stream_); }  // null: plain
  TcpSocket& socket() {
    Tls* encrypted = tls();
    return encrypted != nullptr ? encrypted->next_layer() : std::get<TcpSocket>(stream_);
  }

  // Both directions at once; pending operations end with operation_aborted.
  void close() {
    error_code ignored;
    socket().close(ignored);
  }

  template <typename Buffers, typename Handler>
  auto async_read_some(const Buffers& buffers, Handler&& handler) {
    return asio::async_initiate<Handler, void(error_code, std::size_t)>(
        [this](auto done, const Buffers& into) {
          if (Tls* encrypted = tls()) {
            encrypted->async_read_some(into, std::move(done));
          } else {
            socket().async_read_some(into, std::move(done));
          }
        },
        handler, buffers);
  }

  template <typename Buffers, typename Handler>
  auto async_write_some(const Buffers& buffers, Handler&& handler) {
    return asio::async_initiate<Handler, void(error_code, std::size_t)>(
        [this](auto done, const Buffers& from) {
          if (Tls* encrypted = tls()) {
            encrypted->async_write_some(from, std::move(done));
          } else {
            socket().async_write_some(from, std::move(done));
          }
        },
        handler, buffers);
  }

 private:
  std::variant<TcpSocket, Tls> stream_;
};

// How Beast's WebSocket ends such a stream. The close frame has said goodbye already, so TLS needs
// no close_notify of its own.
inline void beast_close_socket(FlexStream& stream) { stream.close(); }

inline void teardown(beast::role_type role, FlexStream& stream, error_code& result) {
  beast::websocket::teardown(role, stream.socket(), result);
}

template <typename Handler>
void async_teardown(beast::role_type role, FlexStream& stream, Handler&& handler) {
  beast::websocket::async_teardown(role, stream.socket(), std::forward<Handler>(handler));
}

}  // namespace bmgpu::wire
