#include "wire/http_exchange.h"

#include "wire/errors.h"

namespace bmgpu::wire {
namespace {

namespace http = boost::beast::http;

constexpr std::uint32_t kHeadBytesMax = 64 * 1024;
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kErrorBytesMax = 64 * 1024;

}  // namespace

HttpExchange::HttpExchange(WebAddress address, const Endpoint& endpoint)
    : link_(std::move(address), endpoint.ca_sha256), bearer_(endpoint.bearer) {}

std::string HttpExchange::head(std::string_view method, std::string_view path,
                               std::string_view lines) const {
  std::string head(method);
  head += ' ';
  head += path;
  head += " HTTP/1.1\r\nHost: " + link_.address().authority() + "\r\n";
  if (!bearer_.empty()) {
    head += "Authorization: Bearer " + bearer_ + "\r\n";
  }
  head += lines;
  head += "\r\n";
  return head;
}

void HttpExchange::begin_response() {
  parser_.emplace();
  parser_->header_limit(kHeadBytesMax);
  parser_->body_limit(boost::none);  // read_all() limits, read_piece() hands on
  parser_->eager(true);
}

Result<void> HttpExchange::send(std::string_view bytes, LinkTime deadline) {
  const bool kept = link_.connected();
  if (!kept) {
    const Result<void> connected = link_.connect(deadline);
    if (!connected.ok()) {
      return connected;
    }
    buffer_.clear();
  }
  Result<void> sent = link_.write(bytes, deadline);
  if (sent.ok()) {
    sent = read_head(deadline);
  }
  if (sent.ok()) {
    return sent;
  }
  const bool silent = buffer_.size() == 0 && sent.error().code == ErrorCode::Unavailable;
  link_.close();
  buffer_.clear();
  return kept && silent ? send(bytes, deadline) : sent;
}

Result<bool> HttpExchange::fill(LinkTime deadline) {
  const auto space = buffer_.prepare(kReadBytes);
  const Result<std::size_t> got =
      link_.read(static_cast<char*>(space.data()), space.size(), deadline);
  if (!got.ok()) {
    return got.error();
  }
  buffer_.commit(*got);
  return *got > 0;
}

Result<void> HttpExchange::read_head(LinkTime deadline) {
  begin_response();
  error_code failed;
  std::size_t taken = 0;
  for (;;) {
    if (buffer_.size() > 0) {
      const std::size_t used = parser_->put(buffer_.data(), failed);
      buffer_.consume(used);
      taken += used;
      if (!parser_->is_header_done() && taken > kHeadBytesMax) {
        failed = http::error::header_limit;  // the parser counts only what it has not taken yet
      }
      if (failed && failed != http::error::need_more) {
        return Error{
            ErrorCode::DataLoss,
            link_.address().authority() + " does not answer like a market: " + failed.message()};
      }
      failed = {};
      if (parser_->is_header_done()) {
        return {};
      }
    }
    const Result<bool> more = fill(deadline);
    if (!more.ok()) {
      return more.error();
    }
    if (!*more) {
      return Error{ErrorCode::Unavailable,
                   link_.address().authority() + " closed the connection without an answer"};
    }
  }
}

int HttpExchange::status() const { return static_cast<int>(parser_->get().result_int()); }

std::string_view HttpExchange::header(std::string_view name) const {
  const auto value = parser_->get()[boost::beast::string_view(name.data(), name.size())];
  return {value.data(), value.size()};
}

Result<std::string> HttpExchange::read_piece(LinkTime deadline) {
  for (;;) {
    std::string piece;
    piece.swap(parser_->get().body());
    if (!piece.empty() || parser_->is_done()) {
      return piece;
    }
    if (buffer_.size() == 0) {
      const Result<bool> more = fill(deadline);
      if (!more.ok()) {
        return more.error();
      }
      if (!*more) {
        return Error{ErrorCode::Unavailable,
                     "the connection to " + link_.address().authority() + " broke"};
      }
    }
    error_code failed;
    const std::size_t used = parser_->put(buffer_.data(), failed);
    buffer_.consume(used);
    if (failed == http::error::need_more) {
      // The line end behind a chunk waits for the next chunk; the chunk itself does not.
      if (!parser_->get().body().empty()) {
        continue;
      }
      const Result<bool> more = fill(deadline);
      if (!more.ok() || !*more) {
        return Error{ErrorCode::Unavailable,
                     "the connection to " + link_.address().authority() + " broke"};
      }
    } else if (failed) {
      return Error{ErrorCode::DataLoss, "the answer is damaged: " + failed.message()};
    }
  }
}

Result<std::string> HttpExchange::read_all(std::size_t bytes_max, LinkTime deadline) {
  std::string body;
  for (;;) {
    Result<std::string> piece = read_piece(deadline);
    if (!piece.ok() || piece->empty()) {
      return piece.ok() ? Result<std::string>(std::move(body)) : piece;
    }
    body += *piece;
    if (body.size() > bytes_max) {
      return Error{ErrorCode::ResourceExhausted,
                   "the answer is over " + std::to_string(bytes_max) + " bytes"};
    }
  }
}

Error HttpExchange::read_error(LinkTime deadline) {
  const int code = status();
  const Result<std::string> body = read_all(kErrorBytesMax, deadline);
  return parse_error_json(body.ok() ? *body : "", code);
}

void HttpExchange::finish() {
  if (!parser_ || !parser_->is_done() || !parser_->keep_alive()) {
    link_.close();
  }
}

}  // namespace bmgpu::wire
