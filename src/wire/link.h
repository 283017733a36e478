// A blocking connection with deadlines, made of asynchronous operations that the calling thread
// runs itself. Private to wire.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "wire/ca_pin.h"
#include "wire/client.h"
#include "wire/flex_stream.h"
#include "wire/web_address.h"

namespace bmgpu::wire {

using LinkTime = std::chrono::steady_clock::time_point;

// What can be wrong with an endpoint before anything is sent, and its parsed address.
Result<WebAddress> check_endpoint(const Endpoint& endpoint);

// Not thread-safe.
class Link {
 public:
  // REQUIRES: `ca_sha256` is 64 hex digits, or empty: then TLS only looks (shown_ca()).
  Link(WebAddress address, std::string_view ca_sha256);

  const WebAddress& address() const { return address_; }
  bool connected() const { return stream_.has_value(); }
  Result<void> connect(LinkTime deadline);
  Result<void> write(std::string_view bytes, LinkTime deadline);
  // At least one byte; 0 at the orderly end.
  Result<std::size_t> read(char* into, std::size_t size, LinkTime deadline);
  void close();

  const std::string& shown_ca() const { return pin_.shown_ca; }
  FlexStream& stream() { return *stream_; }  // REQUIRES: connected()
  boost::asio::io_context& io() { return io_; }

  // Runs the io_context until `done`; false (and the connection closed) at the deadline.
  bool run_until(const bool& done, LinkTime deadline);

 private:
  Result<void> connect_to(const boost::asio::ip::tcp::endpoint& peer, LinkTime deadline);
  Result<void> handshake(LinkTime deadline);
  Error unreachable(std::string_view why) const;

  boost::asio::io_context io_{1};
  const WebAddress address_;
  CaPin pin_;
  std::optional<boost::asio::ssl::context> tls_;
  std::optional<FlexStream> stream_;
};

}  // namespace bmgpu::wire
