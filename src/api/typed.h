// Handlers that take and give messages instead of bytes.
//
//   bind_unary<v1::PlaceOrderRequest, v1::Order>(server, "bmgpu.v1.Market/PlaceOrder",
//       [](v1::PlaceOrderRequest order, Request request, TypedReplier<v1::Order> replier) {
//         replier.reply(place(std::move(order), request.caller));
//       });
//
// A body that does not decode is answered InvalidArgument and never reaches the handler. Handlers
// find it in Request::body too, byte for byte as received (for the hash of an idempotent request).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/server.h"
#include "wire/encoding.h"

namespace bmgpu::api {

// Answers once, from any thread; copies share the one answer.
template <typename Response>
class TypedReplier {
 public:
  TypedReplier(std::shared_ptr<Replier> replier, wire::Encoding encoding)
      : replier_(std::move(replier)), encoding_(encoding) {}

  void reply(const Result<Response>& outcome) const {
    replier_->reply(outcome.ok() ? Result<std::string>(wire::encode(encoding_, outcome.value()))
                                 : Result<std::string>(outcome.error()));
  }
  wire::Encoding encoding() const { return encoding_; }
  // For answers that are encoded already.
  Replier& bytes() const { return *replier_; }

 private:
  std::shared_ptr<Replier> replier_;  // shared with copies of this object
  wire::Encoding encoding_;
};

// Server stream of Response messages; thread-safe like Stream.
template <typename Response>
class TypedStream {
 public:
  TypedStream(std::shared_ptr<Stream> stream, wire::Encoding encoding)
      : stream_(std::move(stream)), encoding_(encoding) {}

  bool send(const Response& message) const {
    return stream_->send(wire::encode(encoding_, message));
  }
  void finish(Result<void> outcome) const { stream_->finish(std::move(outcome)); }
  bool closed() const { return stream_->closed(); }
  std::size_t queued_bytes() const { return stream_->queued_bytes(); }

 private:
  std::shared_ptr<Stream> stream_;  // shared with copies of this object
  wire::Encoding encoding_;
};

template <typename Message, typename Response, typename Handler>
void bind_unary(Server& server, std::string method, Handler handler) {
  server.unary(std::move(method),
               [handler = std::move(handler)](Request request, std::shared_ptr<Replier> replier) {
                 Message message;
                 const Result<void> decoded = wire::decode(request.encoding, request.body, message);
                 if (!decoded.ok()) {
                   replier->reply(decoded.error());
                   return;
                 }
                 const wire::Encoding encoding = request.encoding;
                 handler(std::move(message), std::move(request),
                         TypedReplier<Response>(std::move(replier), encoding));
               });
}

template <typename Message, typename Response, typename Handler>
void bind_stream(Server& server, std::string method, Handler handler) {
  server.stream(std::move(method), [handler = std::move(handler)](Request request,
                                                                  std::shared_ptr<Stream> stream) {
    Message message;
    const Result<void> decoded = wire::decode(request.encoding, request.body, message);
    if (!decoded.ok()) {
      stream->finish(decoded.error());
      return;
    }
    const wire::Encoding encoding = request.encoding;
    handler(std::move(message), std::move(request),
            TypedStream<Response>(std::move(stream), encoding));
  });
}

}  // namespace bmgpu::api
