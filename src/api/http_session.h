// One HTTP/1.1 connection: reads requests one after the other, answers them in order. Streams and
// blobs take over as a Transfer until they end; an upgrade moves the stream away. Private to api.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "api/connection.h"
#include "api/edge.h"
#include "api/handles.h"
#include "wire/flex_stream.h"
#include "wire/http_body.h"

namespace bmgpu::api {

class HttpSession;

// What a request becomes when one answer does not do. Owned by its session, which calls it.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual void body(std::string bytes, bool complete);  // of the request; one call at a time
  virtual void deliver(Delivery delivery) = 0;
  virtual void written() = 0;  // what write() was given last is with the kernel
  virtual void tick(SteadyTime now) = 0;
  virtual void drain() = 0;  // the server stops
  virtual std::uint64_t token() const = 0;
};

class HttpSession final : public Connection {
 public:
  HttpSession(Edge& edge, std::uint64_t number, wire::FlexStream stream, std::string peer);

  void start();
  void deliver(Delivery delivery) override;
  void tick(SteadyTime now) override;
  void drain() override;
  void close() override;
  void drop_token(std::uint64_t token) override;

  // For transfers.
  Edge& edge() { return edge_; }
  HandleTarget target() const { return {edge_.outbox(), number_, exchange_}; }
  void write(std::string bytes);  // REQUIRES: no write is pending
  void read_body();               // the next piece, or the end, goes to the transfer
  void set_deadline(SteadyTime deadline) { deadline_ = deadline; }
  void finish_transfer();  // all was written: on to the next request
  // Instead of a transfer's own answer; the transfer is gone afterwards.
  void fail(const Error& error);
  void fail_large(std::size_t bytes_max);
  void answer_json(std::string_view json);

 private:
  using Parser = boost::beast::http::request_parser<wire::AppendBody>;
  enum class State { Handshake, Head, Body, Waiting, Writing, Transfer, Linger, Closed };
  // An answer before any handler: HTTP status, Connect code, message, extra header lines.
  struct Refusal {
    int status = 400;
    std::string_view code;
    std::string message;
    std::string_view headers = {};
  };

  // http_session.cc: bytes in, bytes out.
  void next_request();
  void read();
  void on_read(std::size_t count);
  void advance();
  bool parse(boost::system::error_code& failed);
  void on_body_bytes();
  void refuse_malformed(const boost::system::error_code& why);
  void skip_body();
  void send_answer(int status, std::string_view content_type, std::string_view body,
                   std::string_view headers = {});
  void on_written();
  void linger();

  // dispatch.cc: what a request asks for.
  void on_head();
  void on_page(const Server::PageHandler& handler);
  void on_call(const Route& route);
  void on_stream_call(const Route& route);
  bool may_have_body(std::size_t bytes_max);
  bool expects_continue() const;
  void write_continue();
  void on_request();
  std::optional<Refusal> check_call(bool stream);
  std::optional<Refusal> read_key();
  std::string_view header(boost::beast::http::field name) const;
  void refuse(const Refusal& refusal);
  void refuse_large_body(const std::string& bytes);
  void refuse(const Error& error);

  // server_stream.cc, socket_session.cc, blob_transfer.cc: where a request becomes something else.
  void fail_stream(const Error& error);
  void on_upgrade(const Server::SocketOpener& opener);
  void on_blob(std::string_view name);
  void begin_upload(std::string name, AccountId account);
  void open_socket(const Server::SocketOpener& opener, const Identity& caller);

  Edge& edge_;
  const std::uint64_t number_;
  wire::FlexStream stream_;
  const std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  State state_ = State::Handshake;
  SteadyTime deadline_;
  std::uint64_t exchange_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool head_begun_ = false;  // its first byte is here: the deadline counts from then
  std::size_t head_bytes_ = 0;
  std::size_t body_bytes_max_ = 0;
  std::size_t lingered_bytes_ = 0;
  const Route* route_ = nullptr;  // of the request that is being read
  Request request_;
  std::string out_;  // being written
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace bmgpu::api
