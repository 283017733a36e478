// Requests and responses of a blocking client on one kept connection. Private to wire.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "wire/http_body.h"
#include "wire/link.h"

namespace bmgpu::wire {

// Not thread-safe.
class HttpExchange {
 public:
  HttpExchange(WebAddress address, const Endpoint& endpoint);

  // "METHOD /path HTTP/1.1" with Host, Authorization and the given lines ("Name: value\r\n"…).
  std::string head(std::string_view method, std::string_view path, std::string_view lines) const;

  // Sends `bytes` and reads the response's head. If a kept connection turns out to be closed before
  // any byte came back, once more on a new one.
  Result<void> send(std::string_view bytes, LinkTime deadline);
  Result<void> write(std::string_view bytes, LinkTime deadline) {
    return link_.write(bytes, deadline);
  }
  // The head of the next response, after a "100 Continue" for instance.
  Result<void> read_head(LinkTime deadline);

  // Of the response whose head was read.
  int status() const;
  std::string_view header(std::string_view name) const;
  // The next piece of the body; empty once it is complete.
  Result<std::string> read_piece(LinkTime deadline);
  // All of it; ResourceExhausted if it is larger.
  Result<std::string> read_all(std::size_t bytes_max, LinkTime deadline);
  // The error that a response which is no success carries.
  Error read_error(LinkTime deadline);

  // The response was read, or will not be: keeps the connection if it can be used again.
  void finish();
  void close() { link_.close(); }

 private:
  using Parser = boost::beast::http::response_parser<AppendBody>;

  Result<bool> fill(LinkTime deadline);  // false: the orderly end
  void begin_response();

  Link link_;
  const std::string bearer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
};

}  // namespace bmgpu::wire
