#include "api/server_stream.h"

#include <charconv>

#include "wire/connect.h"

namespace bmgpu::api {
namespace {

// A client that takes nothing for this many keep-alive periods is gone.
constexpr int kStalledPeriods = 3;

std::string response_head(wire::Encoding encoding) {
  std::string head = "HTTP/1.1 200 OK\r\nContent-Type: ";
  head += wire::stream_content_type(encoding);
  head += "\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n";
  return head;
}

}  // namespace

ServerStream::ServerStream(HttpSession& session, std::uint64_t token, wire::Encoding encoding)
    : session_(session),
      token_(token),
      encoding_(encoding),
      state_(std::make_shared<SendState>()),
      waiting_(response_head(encoding)),
      quiet_since_(session.edge().now()) {
  session_.set_deadline(SteadyTime::max());
  flush();
}

ServerStream::~ServerStream() {
  state_->closed = true;
  session_.edge().give_stream(token_);
}

std::shared_ptr<Stream> ServerStream::handle() {
  return make_stream(session_.target(), state_, session_.edge().limits().send_queue_bytes_max);
}

void ServerStream::append(std::string_view envelope) {
  char size[16];
  const auto [end, failed] = std::to_chars(size, size + sizeof size, envelope.size(), 16);
  check(failed == std::errc(), "server stream: a chunk size does not print");
  waiting_.append(size, end);
  waiting_ += "\r\n";
  waiting_ += envelope;
  waiting_ += "\r\n";
}

void ServerStream::end(const Result<void>& outcome) {
  append(wire::end_stream(outcome));
  waiting_ += "0\r\n\r\n";
  ended_ = true;
}

void ServerStream::deliver(Delivery delivery) {
  if (ended_) {
    return;
  }
  switch (delivery.kind) {
    case Delivery::Kind::StreamMessage: {
      std::string envelope;
      wire::append_envelope(envelope, 0, delivery.bytes);
      append(envelope);
      waiting_bytes_ += delivery.bytes.size();
      break;
    }
    case Delivery::Kind::StreamEnd:
      end(delivery.error ? Result<void>(*delivery.error) : Result<void>());
      break;
    case Delivery::Kind::Overflow:
      end(Error{ErrorCode::ResourceExhausted,
                "the client reads too slowly: more waits for it than a stream may hold"});
      break;
    default:
      return;
  }
  flush();
}

void ServerStream::flush() {
  if (writing_ || waiting_.empty()) {
    return;
  }
  writing_ = true;
  writing_bytes_ = waiting_bytes_;
  waiting_bytes_ = 0;
  const auto& limits = session_.edge().limits();
  session_.set_deadline(session_.edge().now() + kStalledPeriods * limits.keep_alive);
  session_.write(std::move(waiting_));
  waiting_.clear();
}

void ServerStream::written() {
  writing_ = false;
  state_->queued_bytes.fetch_sub(writing_bytes_, std::memory_order_acq_rel);
  quiet_since_ = session_.edge().now();
  session_.set_deadline(SteadyTime::max());
  if (!waiting_.empty()) {
    flush();
  } else if (ended_) {
    session_.finish_transfer();  // this object is gone now
  }
}

void ServerStream::tick(SteadyTime now) {
  if (writing_ || ended_ || now < quiet_since_ + session_.edge().limits().keep_alive) {
    return;
  }
  std::string envelope;
  wire::append_envelope(envelope, 0, encoding_ == wire::Encoding::Json ? "{}" : "");
  append(envelope);
  flush();
}

void ServerStream::drain() {
  if (!ended_) {
    state_->closed = true;
    end(Error{ErrorCode::Unavailable, "the server stops; connect again in a moment"});
    flush();
  }
}

// A stream's error is the outcome of a stream, not an HTTP status.
void HttpSession::fail_stream(const Error& error) {
  send_answer(200, wire::stream_content_type(request_.encoding), wire::end_stream(error));
}

}  // namespace bmgpu::api
