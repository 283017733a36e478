#include "api/socket_session.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "api/http_session.h"

namespace bmgpu::api {
namespace {

namespace websocket = boost::beast::websocket;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kReasonBytesMax = 123;  // RFC 6455: what fits a control frame

}  // namespace

SocketSession::SocketSession(Edge& edge, HandleTarget target, wire::FlexStream stream,
                             std::uint64_t token)
    : edge_(edge),
      target_(std::move(target)),
      token_(token),
      socket_(std::move(stream)),
      state_(std::make_shared<SendState>()),
      write_deadline_(SteadyTime::max()) {
  socket_.binary(true);
  socket_.auto_fragment(false);
  socket_.read_message_max(edge.limits().frame_bytes_max);
  set_timeouts(true);
}

SocketSession::~SocketSession() { edge_.give_stream(token_); }

std::shared_ptr<Socket> SocketSession::handle() {
  return make_socket(target_, state_, edge_.limits().send_queue_bytes_max);
}

// Beast pings after half of the idle timeout and closes after the whole of it. While reading is
// paused no answer can be seen, so the peer is not watched then.
void SocketSession::set_timeouts(bool watch_peer) {
  websocket::stream_base::timeout timeouts{};
  timeouts.handshake_timeout = edge_.limits().request_timeout;
  timeouts.idle_timeout =
      watch_peer ? 2 * edge_.limits().keep_alive : websocket::stream_base::none();
  timeouts.keep_alive_pings = watch_peer;
  socket_.set_option(timeouts);
}

void SocketSession::on_accepted(const error_code& failed) {
  if (closed_) {
    return;
  }
  if (failed) {
    close();
    return;
  }
  open_ = true;
  read();
  write();
}

void SocketSession::read() {
  if (reading_ || paused_ || ending_ || !open_) {
    return;
  }
  reading_ = true;
  socket_.async_read(buffer_,
                     [this, self = shared_from_this()](const error_code& failed, std::size_t) {
                       reading_ = false;
                       if (!closed_) {
                         on_read(failed);
                       }
                     });
}

void SocketSession::on_read(const error_code& failed) {
  if (failed) {
    close();
    return;
  }
  if (ending_) {
    return;
  }
  if (!socket_.got_binary()) {
    end(websocket::close_code::unknown_data, "only binary messages are accepted");
    return;
  }
  std::string message = boost::beast::buffers_to_string(buffer_.data());
  buffer_.consume(buffer_.size());
  handler_.on_message(std::move(message));
  if (!closed_) {
    read();
  }
}

void SocketSession::write() {
  if (writing_ || !open_ || closed_) {
    return;
  }
  if (waiting_.empty()) {
    if (ending_) {
      send_close();
    }
    return;
  }
  writing_ = true;
  write_deadline_ = edge_.now() + 3 * edge_.limits().keep_alive;
  socket_.async_write(boost::asio::buffer(waiting_.front()),
                      [this, self = shared_from_this()](const error_code& failed, std::size_t) {
                        writing_ = false;
                        if (closed_) {
                          return;
                        }
                        if (failed) {
                          close();
                        } else {
                          on_written();
                        }
                      });
}

void SocketSession::on_written() {
  state_->queued_bytes.fetch_sub(waiting_.front().size(), std::memory_order_acq_rel);
  waiting_.pop_front();
  write_deadline_ = SteadyTime::max();
  write();
}

// Closes once what waits is written; the first reason counts.
void SocketSession::end(websocket::close_code code, std::string_view reason) {
  if (ending_) {
    return;
  }
  reason = reason.substr(0, kReasonBytesMax);
  ending_ = true;
  state_->closed = true;
  reason_ = websocket::close_reason(code, {reason.data(), reason.size()});
  set_timeouts(true);
  write();
}

void SocketSession::send_close() {
  open_ = false;  // nothing may be sent behind the close frame
  socket_.async_close(reason_, [this, self = shared_from_this()](const error_code&) { close(); });
}

void SocketSession::deliver(Delivery delivery) {
  if (delivery.exchange != target_.exchange) {
    return;
  }
  switch (delivery.kind) {
    case Delivery::Kind::SocketMessage:
      if (!ending_) {
        waiting_.push_back(std::move(delivery.bytes));
        write();
      }
      break;
    case Delivery::Kind::SocketClose:
      end(websocket::close_code::normal, delivery.bytes);
      break;
    case Delivery::Kind::Overflow:
      waiting_.resize(writing_ ? 1 : 0);
      end(websocket::close_code::policy_error, "more waits for you than a WebSocket may hold");
      break;
    case Delivery::Kind::SocketPause:
      paused_ = true;
      set_timeouts(false);
      break;
    case Delivery::Kind::SocketResume:
      paused_ = false;
      set_timeouts(true);
      read();
      break;
    default:
      break;
  }
}

void SocketSession::tick(SteadyTime now) {
  if (now >= write_deadline_) {
    ++edge_.counters().timed_out;
    close();
  }
}

void SocketSession::drain() {
  end(websocket::close_code::going_away, "the server stops; connect again in a moment");
}

void SocketSession::drop_token(std::uint64_t token) {
  if (token == token_) {
    end(websocket::close_code::policy_error, "the token was revoked");
  }
}

void SocketSession::close() {
  if (closed_) {
    return;
  }
  const auto self = shared_from_this();  // the table may hold the last other reference
  closed_ = true;
  state_->closed = true;
  socket_.next_layer().close();
  edge_.remove(target_.connection);
  const SocketHandler handler = std::move(handler_);
  handler_ = {};
  if (handler.on_closed) {
    handler.on_closed();
  }
}

template <typename Request>
void SocketSession::accept(const Request& request, SocketHandler handler) {
  handler_ = std::move(handler);
  socket_.async_accept(request, [this, self = shared_from_this()](const error_code& failed) {
    on_accepted(failed);
  });
}

void HttpSession::on_upgrade(const Server::SocketOpener& opener) {
  const auto& request = parser_->get();
  if (request.method() != http::verb::get) {
    refuse(
        Refusal{405, "unimplemented", "this is a WebSocket: open it with GET", "\r\nAllow: GET"});
    return;
  }
  if (!websocket::is_upgrade(request)) {
    refuse(Refusal{426, "invalid_argument", "this is a WebSocket: ask for an upgrade to it",
                   "\r\nUpgrade: websocket"});
    return;
  }
  Result<Identity> caller = edge_.authenticate(header(http::field::authorization));
  if (!caller.ok()) {
    refuse(caller.error());
    return;
  }
  if (buffer_.size() > 0) {
    refuse(Refusal{400, "invalid_argument", "frames may follow only after the upgrade's answer"});
    return;
  }
  if (!edge_.take_stream(caller->token)) {
    refuse(Error{ErrorCode::ResourceExhausted,
                 "this token has " + std::to_string(edge_.limits().streams_per_token_max) +
                     " open streams, as many as it may have; close one first"});
    return;
  }
  open_socket(opener, *caller);
}

void HttpSession::open_socket(const Server::SocketOpener& opener, const Identity& caller) {
  const auto self = shared_from_this();
  auto session = std::make_shared<SocketSession>(edge_, target(), std::move(stream_), caller.token);
  Result<SocketHandler> handler = opener(caller, session->handle());
  if (!handler.ok()) {
    stream_ = session->release();
    refuse(handler.error());
    return;
  }
  state_ = State::Closed;  // the socket session has the stream and the number now
  edge_.put(number_, session);
  session->accept(parser_->get(), std::move(*handler));
}

}  // namespace bmgpu::api
