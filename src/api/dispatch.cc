// What a request asks for: routes, content types, tokens, and the hand-over to handlers.
#include <algorithm>
#include <charconv>

#include "api/blob_transfer.h"
#include "api/handles.h"
#include "api/http_session.h"
#include "api/server_stream.h"
#include "api/socket_session.h"
#include "wire/connect.h"
#include "wire/errors.h"

namespace bmgpu::api {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kKeyBytesMax = 128;
constexpr std::string_view kBlobPrefix = "/blobs/";

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Paths come from strangers: shown back cut; the JSON printer escapes the rest.
std::string shown(std::string_view text) {
  constexpr std::size_t kShownMax = 100;
  return std::string(text.substr(0, kShownMax)) + (text.size() > kShownMax ? "…" : "");
}

}  // namespace

std::string_view HttpSession::header(http::field name) const { return view(parser_->get()[name]); }

void HttpSession::refuse(const Refusal& refusal) {
  send_answer(refusal.status, "application/json", wire::error_json(refusal.code, refusal.message),
              refusal.headers);
}

void HttpSession::refuse(const Error& error) {
  send_answer(wire::http_status(error.code), "application/json", wire::error_json(error),
              error.code == ErrorCode::Unauthenticated ? "\r\nWWW-Authenticate: Bearer" : "");
}

void HttpSession::on_head() {
  ++edge_.counters().requests;
  ++exchange_;
  if (!parser_->keep_alive() || edge_.stopping()) {
    keep_alive_ = false;
  }
  head_only_ = parser_->get().method() == http::verb::head;
  const std::string_view target = view(parser_->get().target());
  const std::string_view path = target.substr(0, target.find('?'));
  if (edge_.blob_store() != nullptr && path.starts_with(kBlobPrefix)) {
    on_blob(path.substr(kBlobPrefix.size()));
    return;
  }
  const Route* route = edge_.find(path);
  if (route == nullptr) {
    refuse(Refusal{404, "unimplemented", "there is nothing at " + shown(path)});
  } else if (const auto* handler = std::get_if<Server::PageHandler>(route)) {
    on_page(*handler);
  } else if (const auto* opener = std::get_if<Server::SocketOpener>(route)) {
    on_upgrade(*opener);
  } else {
    request_ = Request{};
    request_.method = path.substr(1);
    on_call(*route);
  }
}

void HttpSession::on_page(const Server::PageHandler& handler) {
  if (parser_->get().method() != http::verb::get && !head_only_) {
    refuse(Refusal{405, "unimplemented", "this page is read with GET", "\r\nAllow: GET, HEAD"});
    return;
  }
  const Server::Page page = handler();
  send_answer(page.status, page.content_type, page.body);
}

// What every call must have, whichever way it is answered.
std::optional<HttpSession::Refusal> HttpSession::check_call(bool stream) {
  if (parser_->get().method() != http::verb::post) {
    return Refusal{405, "unimplemented", "this method is called with POST", "\r\nAllow: POST"};
  }
  if (stream && parser_->get().version() < 11) {
    return Refusal{505, "invalid_argument", "streams need HTTP/1.1"};
  }
  const std::string_view type = header(http::field::content_type);
  const auto encoding = stream ? wire::stream_encoding(type) : wire::unary_encoding(type);
  if (!encoding) {
    return stream ? Refusal{415, "invalid_argument",
                            "the Content-Type of this stream must be application/connect+json or "
                            "application/connect+proto",
                            "\r\nAccept-Post: application/connect+json, application/connect+proto"}
                  : Refusal{415, "invalid_argument",
                            "the Content-Type must be application/json or application/proto",
                            "\r\nAccept-Post: application/json, application/proto"};
  }
  request_.encoding = *encoding;
  const std::string_view compression = stream ? view(parser_->get()["Connect-Content-Encoding"])
                                              : header(http::field::content_encoding);
  if (!compression.empty() && compression != "identity") {
    return Refusal{415, "unimplemented", "compressed bodies are not accepted; send identity"};
  }
  return std::nullopt;
}

std::optional<HttpSession::Refusal> HttpSession::read_key() {
  const auto range = parser_->get().equal_range("Idempotency-Key");
  if (range.first == range.second) {
    return std::nullopt;
  }
  const std::string_view key = view(range.first->value());
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
  if (std::next(range.first) != range.second || key.empty() || key.size() > kKeyBytesMax ||
      !printable) {
    return Refusal{
        400, "invalid_argument",
        "the Idempotency-Key header must be there once and have 1 to 128 printable ASCII "
        "characters"};
  }
  request_.idempotency_key = key;
  return std::nullopt;
}

void HttpSession::on_call(const Route& route) {
  const bool stream = std::holds_alternative<Server::StreamHandler>(route);
  auto refusal = check_call(stream);
  if (!refusal) {
    refusal = read_key();
  }
  if (refusal) {
    refuse(*refusal);
    return;
  }
  Result<Identity> caller = edge_.authenticate(header(http::field::authorization));
  if (!caller.ok()) {
    stream ? fail_stream(caller.error()) : refuse(caller.error());
    return;
  }
  request_.caller = *caller;
  request_.peer = peer_;
  route_ = &route;
  if (!may_have_body(edge_.limits().body_bytes_max)) {
    return;
  }
  parser_->eager(true);
  state_ = State::Body;
  if (expects_continue()) {
    write_continue();
  } else {
    advance();
  }
}

// False: the announced body is too large, and that was answered.
bool HttpSession::may_have_body(std::size_t bytes_max) {
  body_bytes_max_ = bytes_max;
  const auto announced = parser_->content_length();
  if (!announced || *announced <= bytes_max) {
    return true;
  }
  refuse_large_body(std::to_string(*announced));
  return false;
}

void HttpSession::refuse_large_body(const std::string& bytes) {
  refuse(Refusal{413, "resource_exhausted",
                 "the body has " + bytes + " bytes; at most " + std::to_string(body_bytes_max_) +
                     " are accepted here"});
}

bool HttpSession::expects_continue() const {
  return !header(http::field::expect).empty() && !parser_->is_done() && buffer_.size() == 0;
}

void HttpSession::write_continue() { write("HTTP/1.1 100 Continue\r\n\r\n"); }

void HttpSession::on_request() {
  request_.body.swap(parser_->get().body());
  if (const auto* handler = std::get_if<Server::StreamHandler>(route_)) {
    Result<std::string> message = wire::parse_stream_request(request_.body);
    if (!message.ok()) {
      fail_stream(message.error());
      return;
    }
    if (!edge_.take_stream(request_.caller.token)) {
      fail_stream(Error{ErrorCode::ResourceExhausted,
                        "this token has " + std::to_string(edge_.limits().streams_per_token_max) +
                            " open streams, as many as it may have; close one first"});
      return;
    }
    request_.body = std::move(*message);
    state_ = State::Transfer;
    auto transfer = std::make_unique<ServerStream>(*this, request_.caller.token, request_.encoding);
    std::shared_ptr<Stream> handle = transfer->handle();
    transfer_ = std::move(transfer);
    read();  // to learn when the client is gone
    (*handler)(std::move(request_), std::move(handle));
    return;
  }
  state_ = State::Waiting;
  auto patience = edge_.limits().answer_timeout;
  const std::string_view timeout = view(parser_->get()["Connect-Timeout-Ms"]);
  std::uint32_t wanted_ms = 0;
  const auto [end, failed] =
      std::from_chars(timeout.data(), timeout.data() + timeout.size(), wanted_ms);
  if (!timeout.empty() && failed == std::errc() && end == timeout.data() + timeout.size()) {
    patience = std::min(patience, std::chrono::milliseconds(wanted_ms));
  }
  deadline_ = edge_.now() + patience;
  const wire::Encoding encoding = request_.encoding;
  std::get<Server::UnaryHandler> (*route_)(std::move(request_), make_replier(target()));
  request_.encoding = encoding;  // of the answer
}

}  // namespace bmgpu::api
