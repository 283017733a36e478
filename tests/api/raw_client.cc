#include "api/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace bmgpu::api {

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{20, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

RawClient::~RawClient() { ::close(fd_); }

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool RawClient::fill() {
  char bytes[65536];
  const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
  if (count <= 0) {
    return false;
  }
  held_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

std::string RawClient::read_some() {
  if (held_.empty()) {
    fill();
  }
  return std::exchange(held_, {});
}

bool RawClient::closed_by_peer() {
  errno = 0;
  while (fill()) {
    held_.clear();
  }
  return errno != EAGAIN && errno != EWOULDBLOCK;
}

void RawClient::shutdown_send() { ::shutdown(fd_, SHUT_WR); }

RawResponse RawClient::read_response(bool head_only) {
  std::size_t end = 0;
  while ((end = held_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) {
      return {};
    }
  }
  RawResponse response;
  response.status = std::atoi(held_.substr(9, 3).c_str());
  std::size_t at = held_.find("\r\n") + 2;
  while (at < end + 2) {
    const std::size_t line_end = held_.find("\r\n", at);
    const std::string line = held_.substr(at, line_end - at);
    const std::size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    response.headers[name] = line.substr(colon + 2);
    at = line_end + 2;
  }
  held_.erase(0, end + 4);
  if (head_only) {
    return response;
  }
  if (response.headers.contains("transfer-encoding")) {
    return read_chunks(response) ? response : RawResponse{};
  }
  const std::size_t size = std::strtoul(response.headers["content-length"].c_str(), nullptr, 10);
  while (held_.size() < size) {
    if (!fill()) {
      return {};
    }
  }
  response.body = held_.substr(0, size);
  held_.erase(0, size);
  return response;
}

bool RawClient::read_chunks(RawResponse& response) {
  for (;;) {
    std::size_t line_end = 0;
    while ((line_end = held_.find("\r\n")) == std::string::npos) {
      if (!fill()) {
        return false;
      }
    }
    const std::size_t size = std::strtoul(held_.c_str(), nullptr, 16);
    while (held_.size() < line_end + 2 + size + 2) {
      if (!fill()) {
        return false;
      }
    }
    response.body += held_.substr(line_end + 2, size);
    held_.erase(0, line_end + 2 + size + 2);
    if (size == 0) {
      return true;
    }
  }
}

std::string post(std::string_view method, std::string_view body, std::string_view content_type,
                 std::string_view token, std::string_view header_lines) {
  std::string request = "POST /" + std::string(method) + " HTTP/1.1\r\nHost: test\r\n";
  request += "Content-Type: " + std::string(content_type) + "\r\n";
  if (!token.empty()) {
    request += "Authorization: Bearer " + std::string(token) + "\r\n";
  }
  request += header_lines;
  request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  return request;
}

}  // namespace bmgpu::api
