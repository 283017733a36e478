#include "wire/web_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace bmgpu::wire {
namespace {

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool is_ip(int family, const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(family, text.c_str(), bytes) == 1;
}

Error refused(std::string_view url) {
  constexpr std::size_t kShownMax = 100;
  return Error{ErrorCode::InvalidArgument, "'" + std::string(url.substr(0, kShownMax)) +
                                               "' is no address of a market; one looks like "
                                               "https://market.example:8443"};
}

}  // namespace

std::string WebAddress::authority() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + port;
}

Result<WebAddress> parse_url(std::string_view url) {
  std::string_view rest = url;
  WebAddress address;
  if (rest.starts_with("https://")) {
    address.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return refused(url);
  }
  if (rest.ends_with('/')) {
    rest.remove_suffix(1);
  }
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) {
      return refused(url);
    }
    address.host = rest.substr(1, end - 1);
    address.host_is_ip = is_ip(AF_INET6, address.host);
    if (!address.host_is_ip) {
      return refused(url);
    }
    rest.remove_prefix(end + 1);
  } else {
    address.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(address.host.size());
    if (address.host.empty() || address.host.size() > 253 ||
        !std::all_of(address.host.begin(), address.host.end(), is_host_character)) {
      return refused(url);
    }
    address.host_is_ip = is_ip(AF_INET, address.host);
  }
  if (rest.empty()) {
    address.port = address.tls ? "443" : "80";
    return address;
  }
  std::uint16_t port = 0;
  const char* begin = rest.data() + 1;
  const char* end = rest.data() + rest.size();
  const auto [stop, failed] = std::from_chars(begin, end, port);
  if (rest[0] != ':' || failed != std::errc() || stop != end || port == 0) {
    return refused(url);
  }
  address.port = std::to_string(port);
  return address;
}

}  // namespace bmgpu::wire
