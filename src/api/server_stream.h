// A Connect server stream on an HTTP session: envelopes in a chunked body, an empty message as
// keep-alive, the outcome last. Private to api.
#pragma once

#include "api/handles.h"
#include "api/http_session.h"

namespace bmgpu::api {

class ServerStream final : public Transfer {
 public:
  // REQUIRES: the token's stream was taken; it is given back at the end.
  ServerStream(HttpSession& session, std::uint64_t token, wire::Encoding encoding);
  ~ServerStream() override;

  std::shared_ptr<Stream> handle();

  void deliver(Delivery delivery) override;
  void written() override;
  void tick(SteadyTime now) override;
  void drain() override;
  std::uint64_t token() const override { return token_; }

 private:
  void append(std::string_view envelope);
  void end(const Result<void>& outcome);
  void flush();

  HttpSession& session_;
  const std::uint64_t token_;
  const wire::Encoding encoding_;
  std::shared_ptr<SendState> state_;  // shared with the handler's Stream
  std::string waiting_;               // chunks for the next write
  std::size_t waiting_bytes_ = 0;     // of messages in them
  std::size_t writing_bytes_ = 0;     // of messages in the write under way
  bool writing_ = false;
  bool ended_ = false;
  SteadyTime quiet_since_;
};

}  // namespace bmgpu::api
