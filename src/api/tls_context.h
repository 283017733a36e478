// The server side of TLS as the edge wants it. Private to api.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "api/server.h"

namespace bmgpu::api {

// TLS 1.3 only, no compression, no renegotiation, no client certificates.
Result<boost::asio::ssl::context> make_tls_context(const TlsFiles& files);

}  // namespace bmgpu::api
