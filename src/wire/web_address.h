// The address in a URL, strictly: scheme http or https, host, optional port, nothing else.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::wire {

struct WebAddress {
  bool tls = false;
  std::string host;  // name, IPv4, or IPv6 without brackets
  std::string port;  // decimal, 1 to 65535
  bool host_is_ip = false;

  std::string authority() const;  // "host:port", IPv6 in brackets: for the Host header
};

Result<WebAddress> parse_url(std::string_view url);

}  // namespace bmgpu::wire
