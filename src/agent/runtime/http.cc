#include "agent/runtime/http.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace bmgpu::agent {
namespace {

Error late() {
  return {ErrorCode::DeadlineExceeded, "the container engine did not answer in time"};
}
Error closed() { return {ErrorCode::Unavailable, "the container engine closed the connection"}; }
Error malformed() { return {ErrorCode::Internal, "the container engine sent no valid HTTP"}; }

struct Head {
  int status = 0;
  bool chunked = false;
  std::optional<std::size_t> length;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool parse_status_line(std::string_view line, Head& head) {
  if (!line.starts_with("HTTP/1.") || line.size() < 12) {
    return false;
  }
  const auto [end, error] = std::from_chars(line.data() + 9, line.data() + 12, head.status);
  return error == std::errc() && end == line.data() + 12 && head.status >= 100;
}

bool parse_header(std::string_view line, Head& head) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    return false;
  }
  const std::string name = lower(line.substr(0, colon));
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (name == "transfer-encoding") {
    head.chunked = lower(value) == "chunked";
  } else if (name == "content-length") {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc() || end != value.data() + value.size()) {
      return false;
    }
    head.length = length;
  }
  return true;
}

}  // namespace

std::string url_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

Result<HttpConnection> HttpConnection::connect(const std::string& socket,
                                               Clock::time_point deadline) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::InvalidArgument, "socket path too long: " + socket};
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return errno_error("socket", errno);
  }
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EAGAIN) {
      return Error{ErrorCode::Unavailable, "the container engine does not listen on " + socket};
    }
    // A full backlog gives EAGAIN at once on unix sockets: the engine is frozen or swamped.
    if (Clock::now() >= deadline) {
      return late();
    }
    ::poll(nullptr, 0, 10);
  }
  return HttpConnection(std::move(fd));
}

Result<void> HttpConnection::wait_for(short events, Clock::time_point deadline) const {
  constexpr long kSliceMs = 100;  // how soon a cancellation is noticed
  while (true) {
    const long left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || (cancel_ != nullptr && *cancel_)) {
      return late();
    }
    pollfd one = {fd_.get(), events, 0};
    if (::poll(&one, 1, static_cast<int>(std::min(left, kSliceMs))) > 0) {
      return {};
    }
  }
}

Result<void> HttpConnection::send_all(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      if (Result<void> ready = wait_for(POLLOUT, deadline); !ready.ok()) {
        return ready;
      }
    } else if (errno != EINTR) {
      return closed();
    }
  }
  return {};
}

Result<std::size_t> HttpConnection::fill(Clock::time_point deadline) {
  std::array<char, 65536> bytes;
  while (true) {
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (n >= 0) {
      buffer_.append(bytes.data(), static_cast<std::size_t>(n));
      return static_cast<std::size_t>(n);
    }
    if (errno == EAGAIN) {
      if (Result<void> ready = wait_for(POLLIN, deadline); !ready.ok()) {
        return ready.error();
      }
    } else if (errno != EINTR) {
      return closed();
    }
  }
}

Result<std::string> HttpConnection::read_line(Clock::time_point deadline) {
  while (true) {
    if (const std::size_t end = buffer_.find("\r\n"); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      return line;
    }
    if (buffer_.size() > kHeadBytesMax) {
      return malformed();
    }
    Result<std::size_t> got = fill(deadline);
    if (!got.ok()) {
      return got.error();
    }
    if (*got == 0) {
      return closed();
    }
  }
}

Result<void> HttpConnection::read_exactly(std::size_t count, Clock::time_point deadline,
                                          const OnBody& sink) {
  while (count > 0) {
    if (buffer_.empty()) {
      Result<std::size_t> got = fill(deadline);
      if (!got.ok()) {
        return got.error();
      }
      if (*got == 0) {
        return closed();
      }
    }
    const std::size_t part = std::min(count, buffer_.size());
    sink(std::string_view(buffer_).substr(0, part));
    buffer_.erase(0, part);
    count -= part;
  }
  return {};
}

Result<void> HttpConnection::read_chunks(Clock::time_point deadline, const OnBody& sink) {
  while (true) {
    Result<std::string> line = read_line(deadline);
    if (!line.ok()) {
      return line.error();
    }
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), size, 16);
    if (error != std::errc() || end == line->data()) {
      return malformed();
    }
    if (Result<void> body = read_exactly(size, deadline, sink); !body.ok()) {
      return body;
    }
    // The line after the bytes; after the last chunk, the empty trailer.
    if (Result<std::string> rest = read_line(deadline); !rest.ok()) {
      return rest.error();
    }
    if (size == 0) {
      return {};
    }
  }
}

Result<void> HttpConnection::send_head(const HttpRequest& request, Clock::time_point deadline,
                                       bool chunked) {
  std::string head = request.method + " " + request.target + " HTTP/1.1\r\nHost: d\r\n";
  upgrade_ = request.upgrade;
  if (upgrade_) {
    head += "Connection: Upgrade\r\nUpgrade: tcp\r\n";
  }
  if (chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else {
    head += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  head += "Content-Type: " + request.content_type + "\r\n\r\n";
  return send_all(head + request.body, deadline);
}

Result<void> HttpConnection::send_chunk(std::string_view bytes, Clock::time_point deadline) {
  std::array<char, 20> size;
  const auto end = std::to_chars(size.begin(), size.end(), bytes.size(), 16).ptr;
  return send_all(std::string(size.begin(), end) + "\r\n" + std::string(bytes) + "\r\n", deadline);
}

Result<HttpResponse> HttpConnection::receive(Clock::time_point deadline, const OnBody& on_body) {
  Result<std::string> line = read_line(deadline);
  if (!line.ok()) {
    return line.error();
  }
  Head head;
  if (!parse_status_line(*line, head)) {
    return malformed();
  }
  while (true) {
    line = read_line(deadline);
    if (!line.ok()) {
      return line.error();
    }
    if (line->empty()) {
      break;
    }
    if (!parse_header(*line, head)) {
      return malformed();
    }
  }
  HttpResponse response;
  response.status = head.status;
  if (upgrade_ && head.status < 300) {
    return response;
  }
  const bool stream = on_body != nullptr && head.status < 300;
  bool too_long = false;
  const OnBody sink = [&](std::string_view bytes) {
    if (stream) {
      on_body(bytes);
    } else if (response.body.size() + bytes.size() <= kBodyBytesMax) {
      response.body += bytes;
    } else {
      too_long = true;
    }
  };
  Result<void> body;
  if (head.chunked) {
    body = read_chunks(deadline, sink);
  } else if (head.status != 204 && head.status != 304) {
    body = read_exactly(head.length.value_or(0), deadline, sink);
  }
  if (!body.ok()) {
    return body.error();
  }
  if (too_long) {
    return Error{ErrorCode::ResourceExhausted, "the container engine's answer is too long"};
  }
  return response;
}

Result<HttpResponse> HttpConnection::exchange(const HttpRequest& request,
                                              Clock::time_point deadline, const OnBody& on_body) {
  if (Result<void> sent = send_head(request, deadline, false); !sent.ok()) {
    return sent.error();
  }
  return receive(deadline, on_body);
}

}  // namespace bmgpu::agent
