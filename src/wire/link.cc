#include "wire/link.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <vector>

namespace bmgpu::wire {
namespace {

using boost::asio::ip::tcp;

// A token or key goes into a header line: nothing that could end it.
bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

Result<WebAddress> check_endpoint(const Endpoint& endpoint) {
  Result<WebAddress> address = parse_url(endpoint.url);
  if (!address.ok()) {
    return address.error();
  }
  if (!is_printable(endpoint.bearer)) {
    return Error{ErrorCode::InvalidArgument,
                 "the token has a blank or another character that no token has; copy it again"};
  }
  const Result<std::string> digest = parse_hex(endpoint.ca_sha256);
  const bool pinned = digest.ok() && digest->size() == Sha256Digest().size();
  if (address->tls && !pinned) {
    return Error{
        ErrorCode::InvalidArgument,
        "an https address needs the SHA-256 of the market's CA certificate (64 hexadecimal "
        "digits): bmd prints it and writes it to endpoint.json"};
  }
  return address;
}

Link::Link(WebAddress address, std::string_view ca_sha256) : address_(std::move(address)) {
  if (!address_.tls) {
    return;
  }
  pin_.check = !ca_sha256.empty();
  if (pin_.check) {
    const Result<std::string> digest = parse_hex(ca_sha256);
    check(digest.ok() && digest->size() == pin_.expected.size(), "link: a digest that is none");
    std::copy(digest->begin(), digest->end(), pin_.expected.begin());
  }
  tls_.emplace(make_pinned_context(pin_));
}

Error Link::unreachable(std::string_view why) const {
  return Error{ErrorCode::Unavailable,
               "cannot reach " + address_.authority() + ": " + std::string(why)};
}

bool Link::run_until(const bool& done, LinkTime deadline) {
  io_.restart();
  while (!done && io_.run_one_until(deadline) > 0) {
  }
  if (done) {
    return true;
  }
  close();
  io_.restart();
  while (!done && io_.run_one() > 0) {  // cancelled operations report back
  }
  return false;
}

void Link::close() {
  if (stream_) {
    stream_->close();
    // What was cancelled reports back before its stream goes away.
    io_.restart();
    io_.poll();
    stream_.reset();
  }
}

Result<void> Link::connect(LinkTime deadline) {
  close();
  std::vector<tcp::endpoint> peers;
  error_code failed;
  const auto literal = boost::asio::ip::make_address(address_.host, failed);
  const auto port = static_cast<std::uint16_t>(std::stoi(address_.port));
  if (!failed) {
    peers.emplace_back(literal, port);
  } else {
    tcp::resolver resolver(io_);
    bool done = false;
    resolver.async_resolve(address_.host, address_.port,
                           [&](const error_code& result, const tcp::resolver::results_type& found) {
                             failed = result;
                             peers.assign(found.begin(), found.end());
                             done = true;
                           });
    io_.restart();
    while (!done && io_.run_one_until(deadline) > 0) {
    }
    if (!done) {
      resolver.cancel();
      io_.restart();
      while (!done && io_.run_one() > 0) {
      }
      return unreachable("its name was not resolved in time");
    }
    if (failed) {
      return unreachable(failed.message());
    }
  }
  Error last = unreachable("it has no address");
  for (const tcp::endpoint& peer : peers) {
    if (!address_.tls && !peer.address().is_loopback()) {
      last = Error{ErrorCode::InvalidArgument,
                   address_.authority() +
                       " is not this machine: beyond it only https is allowed (the token would be "
                       "readable on the way)"};
      continue;
    }
    const Result<void> connected = connect_to(peer, deadline);
    if (connected.ok()) {
      return {};
    }
    last = connected.error();
  }
  return last;
}

Result<void> Link::connect_to(const tcp::endpoint& peer, LinkTime deadline) {
  TcpSocket socket(io_);
  if (tls_) {
    stream_.emplace(std::move(socket), *tls_);
  } else {
    stream_.emplace(std::move(socket));
  }
  error_code failed;
  bool done = false;
  stream_->socket().async_connect(peer, [&](const error_code& result) {
    failed = result;
    done = true;
  });
  if (!run_until(done, deadline)) {
    return unreachable("no answer in time");
  }
  if (failed) {
    close();
    return unreachable(failed.message());
  }
  error_code ignored;
  stream_->socket().set_option(tcp::no_delay(true), ignored);
  return tls_ ? handshake(deadline) : Result<void>();
}

Result<void> Link::handshake(LinkTime deadline) {
  pin_.problem.clear();
  expect_host(stream_->tls()->native_handle(), address_);
  error_code failed;
  bool done = false;
  stream_->tls()->async_handshake(boost::asio::ssl::stream_base::client,
                                  [&](const error_code& result) {
                                    failed = result;
                                    done = true;
                                  });
  if (!run_until(done, deadline)) {
    return unreachable("no TLS answer in time");
  }
  if (failed) {
    close();
    return unreachable(pin_.problem.empty() ? "TLS: " + failed.message() : pin_.problem);
  }
  return {};
}

Result<void> Link::write(std::string_view bytes, LinkTime deadline) {
  check(connected(), "link: write without a connection");
  error_code failed;
  bool done = false;
  boost::asio::async_write(*stream_, boost::asio::buffer(bytes.data(), bytes.size()),
                           [&](const error_code& result, std::size_t) {
                             failed = result;
                             done = true;
                           });
  if (!run_until(done, deadline)) {
    return Error{ErrorCode::DeadlineExceeded,
                 address_.authority() + " does not take what is sent to it"};
  }
  if (failed) {
    return unreachable(failed.message());
  }
  return {};
}

Result<std::size_t> Link::read(char* into, std::size_t size, LinkTime deadline) {
  check(connected(), "link: read without a connection");
  error_code failed;
  std::size_t count = 0;
  bool done = false;
  stream_->async_read_some(boost::asio::buffer(into, size),
                           [&](const error_code& result, std::size_t got) {
                             failed = result;
                             count = got;
                             done = true;
                           });
  if (!run_until(done, deadline)) {
    return Error{ErrorCode::DeadlineExceeded, address_.authority() + " did not answer in time"};
  }
  if (failed == boost::asio::error::eof || failed == boost::asio::ssl::error::stream_truncated) {
    return std::size_t{0};
  }
  if (failed) {
    return unreachable(failed.message());
  }
  return count;
}

}  // namespace bmgpu::wire
