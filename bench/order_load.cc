#include "order_load.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/check.h"

namespace bmgpu::bench {
namespace {

using Clock = std::chrono::steady_clock;

int connect_to(const LoadOptions& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  check(getaddrinfo(options.host.c_str(), options.port.c_str(), &hints, &found) == 0,
        "bench: no such address");
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(connect(fd, found->ai_addr, found->ai_addrlen) == 0, "bench: cannot connect");
  freeaddrinfo(found);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

class Connection {
 public:
  Connection(const LoadOptions& options, std::size_t number)
      : options_(options),
        fd_(connect_to(options)),
        key_(options.key_prefix + "-" + std::to_string(number) + "-") {
    head_ =
        "POST /bmgpu.v1.Market/PlaceOrder HTTP/1.1\r\nHost: bench\r\n"
        "Content-Type: application/proto\r\nAuthorization: Bearer " +
        options.tokens[number % options.tokens.size()] +
        "\r\nContent-Length: " + std::to_string(options.body.size()) + "\r\nIdempotency-Key: ";
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  Clock::time_point sent() const { return sent_; }

  void send_next() {
    std::string bytes = head_ + key_ + std::to_string(++orders_) + "\r\n\r\n" + options_.body;
    sent_ = Clock::now();
    check(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "bench: a request did not fit into the socket");
  }

  enum class Answer { None, Good, Bad };
  Answer receive() {
    char buffer[16 * 1024];
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    check(got > 0, "bench: the server closed a connection");
    received_.append(buffer, static_cast<std::size_t>(got));
    const std::size_t head_end = received_.find("\r\n\r\n");
    if (head_end == std::string::npos) {
      return Answer::None;
    }
    static constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t at = received_.find(kLength);
    check(at < head_end, "bench: an answer without length");
    const std::size_t length = std::strtoul(received_.c_str() + at + kLength.size(), nullptr, 10);
    if (received_.size() < head_end + 4 + length) {
      return Answer::None;
    }
    const bool good = received_.compare(9, 3, "200") == 0;
    received_.clear();
    return good ? Answer::Good : Answer::Bad;
  }

 private:
  const LoadOptions& options_;
  const int fd_;
  const std::string key_;
  std::string head_;
  std::string received_;
  std::uint64_t orders_ = 0;
  Clock::time_point sent_;
};

std::int64_t percentile(const std::vector<std::int64_t>& sorted, std::size_t percent) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
}

}  // namespace

LoadResult run_load(const LoadOptions& options) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Connection>> connections;
  for (std::size_t i = 0; i < options.connections; ++i) {
    connections.push_back(std::make_unique<Connection>(options, i));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connections.back().get();
    check(epoll_ctl(poll, EPOLL_CTL_ADD, connections.back()->fd(), &event) == 0,
          "bench: epoll_ctl failed");
  }
  const Clock::time_point measured_from = Clock::now() + options.warm_up;
  const Clock::time_point end = measured_from + options.duration;
  LoadResult result;
  std::vector<std::int64_t> latencies;
  for (const auto& connection : connections) {
    connection->send_next();
  }
  std::vector<epoll_event> events(options.connections);
  for (Clock::time_point now = Clock::now(); now < end;) {
    const int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()), 1000);
    now = Clock::now();
    for (int i = 0; i < count; ++i) {
      auto& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      const Connection::Answer answer = connection.receive();
      if (answer == Connection::Answer::None) {
        continue;
      }
      if (now >= measured_from && now < end) {
        ++(answer == Connection::Answer::Good ? result.answered : result.failed);
        latencies.push_back(
            std::chrono::duration_cast<std::chrono::microseconds>(now - connection.sent()).count());
      }
      connection.send_next();
    }
  }
  close(poll);
  std::sort(latencies.begin(), latencies.end());
  result.per_second = static_cast<double>(result.answered) /
                      std::chrono::duration<double>(options.duration).count();
  result.p50_us = percentile(latencies, 50);
  result.p99_us = percentile(latencies, 99);
  return result;
}

}  // namespace bmgpu::bench
