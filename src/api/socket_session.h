// One WebSocket with binary messages; takes an HTTP session's stream and number over. Private to
// api.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <string>

#include "api/connection.h"
#include "api/edge.h"
#include "api/handles.h"
#include "wire/flex_stream.h"

namespace bmgpu::api {

class SocketSession final : public Connection {
 public:
  // REQUIRES: the token's stream was taken; it is given back at the end.
  SocketSession(Edge& edge, HandleTarget target, wire::FlexStream stream, std::uint64_t token);
  ~SocketSession() override;

  std::shared_ptr<Socket> handle();
  // Answers the upgrade request and begins to read. `Request` is Beast's.
  template <typename Request>
  void accept(const Request& request, SocketHandler handler);

  // Takes the stream back before accept(): the opener refused.
  wire::FlexStream release() { return std::move(socket_.next_layer()); }

  void deliver(Delivery delivery) override;
  void tick(SteadyTime now) override;
  void drain() override;
  void close() override;
  void drop_token(std::uint64_t token) override;

 private:
  using WebSocket = boost::beast::websocket::stream<wire::FlexStream, false>;

  void set_timeouts(bool watch_peer);
  void on_accepted(const boost::system::error_code& failed);
  void read();
  void on_read(const boost::system::error_code& failed);
  void write();
  void on_written();
  void send_close();
  void end(boost::beast::websocket::close_code code, std::string_view reason);

  Edge& edge_;
  const HandleTarget target_;
  const std::uint64_t token_;
  WebSocket socket_;
  SocketHandler handler_;
  std::shared_ptr<SendState> state_;  // shared with the handler's Socket
  boost::beast::flat_buffer buffer_;
  std::deque<std::string> waiting_;  // the first one is being written
  SteadyTime write_deadline_;
  bool open_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool paused_ = false;
  bool ending_ = false;
  bool closed_ = false;
  boost::beast::websocket::close_reason reason_;
};

}  // namespace bmgpu::api
