// TLS for clients that trust exactly one CA, known by the SHA-256 of its certificate. Private to
// wire.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <string>

#include "wire/hash.h"
#include "wire/web_address.h"

namespace bmgpu::wire {

// What the check of the server's certificate found. Must outlive the context.
struct CaPin {
  bool check = true;  // false: only look, for a person to compare
  Sha256Digest expected{};
  std::string problem;   // why the handshake was refused, for people
  std::string shown_ca;  // hex SHA-256 of the last certificate that the server sent
};

// A context for TLS 1.3 whose handshakes succeed only if the server's chain leads to the
// certificate of that digest, is valid now, and names the host given to expect_host().
boost::asio::ssl::context make_pinned_context(CaPin& pin);

// Before the handshake: the name or address that the certificate must have, and SNI for a name.
void expect_host(SSL* tls, const WebAddress& address);

}  // namespace bmgpu::wire
