#include "api/http_session.h"

#include <boost/asio/write.hpp>

#include "wire/connect.h"
#include "wire/errors.h"

namespace bmgpu::api {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 8 * 1024;
constexpr std::size_t kReadBodyBytes = 64 * 1024;
constexpr std::size_t kLingerBytesMax = 1024 * 1024;
constexpr std::chrono::milliseconds kLinger{1'000};

std::string_view reason_phrase(int status) {
  const auto phrase = http::obsolete_reason(static_cast<http::status>(status));
  return {phrase.data(), phrase.size()};
}

}  // namespace

void Transfer::body(std::string, bool) {}

HttpSession::HttpSession(Edge& edge, std::uint64_t number, wire::FlexStream stream,
                         std::string peer)
    : edge_(edge),
      number_(number),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      buffer_(edge.limits().header_bytes_max + kReadBodyBytes) {}

void HttpSession::start() {
  deadline_ = edge_.now() + edge_.limits().request_timeout;
  wire::FlexStream::Tls* tls = stream_.tls();
  if (tls == nullptr) {
    next_request();
    return;
  }
  tls->async_handshake(boost::asio::ssl::stream_base::server,
                       [this, self = shared_from_this()](const error_code& failed) {
                         if (state_ == State::Closed) {
                           return;
                         }
                         if (failed) {
                           close();
                         } else {
                           next_request();
                         }
                       });
}

void HttpSession::next_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(edge_.limits().header_bytes_max));
  parser_->body_limit(boost::none);  // checked per route
  parser_->eager(false);
  state_ = State::Head;
  head_only_ = false;
  head_bytes_ = 0;
  head_begun_ = buffer_.size() > 0;
  deadline_ =
      edge_.now() + (head_begun_ ? edge_.limits().request_timeout : edge_.limits().idle_timeout);
  advance();
}

void HttpSession::read() {
  if (reading_) {
    return;
  }
  const std::size_t wanted =
      state_ == State::Body || state_ == State::Transfer ? kReadBodyBytes : kReadBytes;
  const std::size_t room = std::min(wanted, buffer_.max_size() - buffer_.size());
  if (room == 0) {
    close();  // a chunk header or the like that never ends
    return;
  }
  reading_ = true;
  stream_.async_read_some(buffer_.prepare(room), [this, self = shared_from_this()](
                                                     const error_code& failed, std::size_t count) {
    reading_ = false;
    if (state_ == State::Closed) {
      return;
    }
    if (failed) {
      close();
    } else {
      on_read(count);
    }
  });
}

void HttpSession::on_read(std::size_t count) {
  if (state_ == State::Head && !head_begun_) {
    head_begun_ = true;
    deadline_ = edge_.now() + edge_.limits().request_timeout;
  }
  buffer_.commit(count);
  switch (state_) {
    case State::Head:
    case State::Body:
      advance();
      break;
    case State::Transfer:
      if (!parser_->is_done()) {
        on_body_bytes();
      } else if (buffer_.size() < edge_.limits().header_bytes_max) {
        read();  // only to learn that the client is gone
      }
      break;
    case State::Linger:
      lingered_bytes_ += count;
      buffer_.consume(buffer_.size());
      if (lingered_bytes_ > kLingerBytesMax) {
        close();
      } else {
        read();
      }
      break;
    default:
      break;
  }
}

// Feeds the parser. False: it needs more bytes, or there was an error.
bool HttpSession::parse(error_code& failed) {
  const bool head = !parser_->is_header_done();
  while (buffer_.size() > 0) {
    const std::size_t used = parser_->put(buffer_.data(), failed);
    buffer_.consume(used);
    // The parser takes whole lines as they come and forgets them in its own limit.
    head_bytes_ += head ? used : 0;
    if (head && head_bytes_ + (parser_->is_header_done() ? 0 : buffer_.size()) >
                    edge_.limits().header_bytes_max) {
      failed = http::error::header_limit;
      return false;
    }
    if (failed == http::error::need_more) {
      failed = {};
      return false;
    }
    if (failed) {
      return false;
    }
    if (parser_->is_done() || (head && parser_->is_header_done())) {
      return true;
    }
    if (used == 0) {
      return false;
    }
  }
  return parser_->is_done();
}

void HttpSession::advance() {
  error_code failed;
  const bool ready = parse(failed);
  if (failed) {
    refuse_malformed(failed);
    return;
  }
  if (state_ == State::Body && parser_->get().body().size() > body_bytes_max_) {
    refuse_large_body("over " + std::to_string(body_bytes_max_));
    return;
  }
  if (!ready) {
    read();
  } else if (state_ == State::Head) {
    on_head();
  } else {
    on_request();
  }
}

void HttpSession::read_body() {
  if (!parser_->is_done()) {
    on_body_bytes();
  } else {
    transfer_->body({}, true);
  }
}

// Hands the transfer what has arrived of the request's body, or waits for some.
void HttpSession::on_body_bytes() {
  error_code failed;
  parse(failed);
  if (failed) {
    refuse_malformed(failed);
    return;
  }
  std::string bytes;
  bytes.swap(parser_->get().body());
  if (bytes.empty() && !parser_->is_done()) {
    read();
  } else {
    transfer_->body(std::move(bytes), parser_->is_done());
  }
}

void HttpSession::refuse_malformed(const error_code& why) {
  keep_alive_ = false;
  transfer_.reset();
  const bool large = why == http::error::header_limit;
  const Error error{large ? ErrorCode::ResourceExhausted : ErrorCode::InvalidArgument,
                    large ? "the request's headers are over " +
                                std::to_string(edge_.limits().header_bytes_max) + " bytes"
                          : "this is no HTTP/1.1 request: " + why.message()};
  state_ = State::Waiting;  // nothing more of this request can be read
  send_answer(large ? 431 : 400, "application/json", wire::error_json(error));
}

// Before an answer to a request whose body was not read: what has arrived is dropped; the rest is
// not worth waiting for.
void HttpSession::skip_body() {
  if (parser_->is_done()) {
    return;
  }
  parser_->eager(true);
  error_code failed;
  parse(failed);
  if (failed || !parser_->is_done()) {
    keep_alive_ = false;
  }
}

void HttpSession::send_answer(int status, std::string_view content_type, std::string_view body,
                              std::string_view headers) {
  if (state_ == State::Head || state_ == State::Body || state_ == State::Transfer) {
    skip_body();
  }
  std::string head = "HTTP/1.1 ";
  head.reserve(256 + headers.size() + (head_only_ ? 0 : body.size()));
  head += std::to_string(status);
  head += ' ';
  head += reason_phrase(status);
  head += "\r\nContent-Type: ";
  head += content_type;
  head += "\r\nContent-Length: ";
  head += std::to_string(body.size());
  head += headers;
  head += keep_alive_ ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
  if (!head_only_) {
    head += body;
  }
  state_ = State::Writing;
  deadline_ = edge_.now() + edge_.limits().request_timeout +
              std::chrono::seconds(body.size() / edge_.limits().bytes_per_second_min);
  write(std::move(head));
}

void HttpSession::write(std::string bytes) {
  check(!writing_, "http session: two writes at once");
  writing_ = true;
  out_ = std::move(bytes);
  boost::asio::async_write(
      stream_, boost::asio::buffer(out_),
      [this, self = shared_from_this()](const error_code& failed, std::size_t) {
        writing_ = false;
        if (state_ == State::Closed) {
          return;
        }
        if (failed) {
          close();
        } else {
          on_written();
        }
      });
}

void HttpSession::on_written() {
  if (state_ == State::Transfer) {
    transfer_->written();
  } else if (state_ == State::Body) {
    advance();  // "100 Continue" is out
  } else if (keep_alive_ && !edge_.stopping()) {
    next_request();
  } else {
    linger();
  }
}

// Closing while unread bytes are there resets the connection, and the client may lose the answer.
void HttpSession::linger() {
  state_ = State::Linger;
  deadline_ = edge_.now() + kLinger;
  error_code ignored;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.consume(buffer_.size());
  read();
}

void HttpSession::finish_transfer() {
  transfer_.reset();
  if (keep_alive_ && !edge_.stopping()) {
    next_request();
  } else {
    linger();
  }
}

void HttpSession::fail(const Error& error) {
  const std::unique_ptr<Transfer> ended = std::move(transfer_);  // the caller is still in it
  refuse(error);
}

void HttpSession::fail_large(std::size_t bytes_max) {
  const std::unique_ptr<Transfer> ended = std::move(transfer_);
  refuse_large_body("over " + std::to_string(bytes_max));
}

void HttpSession::answer_json(std::string_view json) {
  const std::unique_ptr<Transfer> ended = std::move(transfer_);
  send_answer(200, "application/json", json);
}

void HttpSession::deliver(Delivery delivery) {
  if (delivery.exchange != exchange_) {
    return;  // an answer that came after its deadline
  }
  if (state_ == State::Transfer) {
    transfer_->deliver(std::move(delivery));
    return;
  }
  if (state_ != State::Waiting || delivery.kind != Delivery::Kind::Answer) {
    return;
  }
  if (delivery.error) {
    refuse(*delivery.error);
  } else {
    send_answer(200, wire::unary_content_type(request_.encoding), delivery.bytes);
  }
}

void HttpSession::tick(SteadyTime now) {
  if (state_ == State::Transfer) {
    transfer_->tick(now);
  }
  if (state_ == State::Closed || now < deadline_) {
    return;
  }
  if (state_ == State::Waiting) {
    refuse(
        Error{ErrorCode::DeadlineExceeded, "the answer took too long; it may still take effect"});
    ++exchange_;  // the late answer is not one to the next request
    return;
  }
  const bool idle = state_ == State::Head && !head_begun_;
  if (!idle && state_ != State::Linger) {
    ++edge_.counters().timed_out;
  }
  close();
}

void HttpSession::drain() {
  keep_alive_ = false;
  if (state_ == State::Transfer) {
    transfer_->drain();
  } else if (state_ == State::Handshake || state_ == State::Head || state_ == State::Body) {
    close();
  }
}

void HttpSession::drop_token(std::uint64_t token) {
  if (state_ == State::Transfer && transfer_->token() == token) {
    close();
  }
}

void HttpSession::close() {
  if (state_ == State::Closed) {
    return;
  }
  const auto self = shared_from_this();  // the table may hold the last other reference
  state_ = State::Closed;
  transfer_.reset();
  stream_.close();
  edge_.remove(number_);
}

}  // namespace bmgpu::api
