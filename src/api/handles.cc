#include "api/handles.h"

#include <utility>

namespace bmgpu::api {
namespace {

using Kind = Delivery::Kind;

void push(const HandleTarget& target, Kind kind, std::string bytes = {},
          std::optional<Error> error = {}) {
  target.outbox->push(
      {kind, target.connection, target.exchange, std::move(bytes), std::move(error), 0});
}

// Counts a message in, or closes the queue for good once it is over its limit.
bool enqueue(const HandleTarget& target, SendState& state, std::size_t queue_bytes_max, Kind kind,
             std::string message) {
  if (state.closed.load(std::memory_order_acquire)) {
    return false;
  }
  const std::size_t size = message.size();
  if (state.queued_bytes.fetch_add(size, std::memory_order_acq_rel) + size > queue_bytes_max) {
    if (!state.closed.exchange(true, std::memory_order_acq_rel)) {
      push(target, Kind::Overflow);
    }
    return false;
  }
  push(target, kind, std::move(message));
  return true;
}

class OutboxReplier final : public Replier {
 public:
  explicit OutboxReplier(HandleTarget target) : target_(std::move(target)) {}
  ~OutboxReplier() override {
    answer(Error{ErrorCode::Internal, "the server dropped this request without an answer"});
  }
  void reply(Result<std::string> body) override { answer(std::move(body)); }

 private:
  void answer(Result<std::string> body) {
    if (answered_.exchange(true, std::memory_order_acq_rel)) {
      return;
    }
    if (body.ok()) {
      push(target_, Kind::Answer, std::move(body).value());
    } else {
      push(target_, Kind::Answer, {}, body.error());
    }
  }

  HandleTarget target_;
  std::atomic<bool> answered_ = false;
};

class OutboxStream final : public Stream {
 public:
  OutboxStream(HandleTarget target, std::shared_ptr<SendState> state, std::size_t queue_bytes_max)
      : target_(std::move(target)), state_(std::move(state)), max_(queue_bytes_max) {}
  ~OutboxStream() override {
    end(Error{ErrorCode::Internal, "the server dropped this stream without an outcome"});
  }
  bool send(std::string message) override {
    return enqueue(target_, *state_, max_, Kind::StreamMessage, std::move(message));
  }
  void finish(Result<void> outcome) override {
    end(outcome.ok() ? std::nullopt : std::optional<Error>(outcome.error()));
  }
  bool closed() const override { return state_->closed.load(std::memory_order_acquire); }
  std::size_t queued_bytes() const override {
    return state_->queued_bytes.load(std::memory_order_acquire);
  }

 private:
  void end(std::optional<Error> error) {
    if (!state_->closed.exchange(true, std::memory_order_acq_rel)) {
      push(target_, Kind::StreamEnd, {}, std::move(error));
    }
  }

  HandleTarget target_;
  std::shared_ptr<SendState> state_;
  std::size_t max_;
};

class OutboxSocket final : public Socket {
 public:
  OutboxSocket(HandleTarget target, std::shared_ptr<SendState> state, std::size_t queue_bytes_max)
      : target_(std::move(target)), state_(std::move(state)), max_(queue_bytes_max) {}
  ~OutboxSocket() override { close("no longer needed"); }
  bool send(std::string message) override {
    return enqueue(target_, *state_, max_, Kind::SocketMessage, std::move(message));
  }
  void close(std::string_view reason) override {
    if (!state_->closed.exchange(true, std::memory_order_acq_rel)) {
      push(target_, Kind::SocketClose, std::string(reason));
    }
  }
  std::size_t queued_bytes() const override {
    return state_->queued_bytes.load(std::memory_order_acquire);
  }
  void pause() override { push(target_, Kind::SocketPause); }
  void resume() override { push(target_, Kind::SocketResume); }

 private:
  HandleTarget target_;
  std::shared_ptr<SendState> state_;
  std::size_t max_;
};

}  // namespace

std::shared_ptr<Replier> make_replier(HandleTarget target) {
  return std::make_shared<OutboxReplier>(std::move(target));
}
std::shared_ptr<Stream> make_stream(HandleTarget target, std::shared_ptr<SendState> state,
                                    std::size_t queue_bytes_max) {
  return std::make_shared<OutboxStream>(std::move(target), std::move(state), queue_bytes_max);
}
std::shared_ptr<Socket> make_socket(HandleTarget target, std::shared_ptr<SendState> state,
                                    std::size_t queue_bytes_max) {
  return std::make_shared<OutboxSocket>(std::move(target), std::move(state), queue_bytes_max);
}

}  // namespace bmgpu::api
