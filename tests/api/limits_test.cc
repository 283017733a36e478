// The edge under clients that are slow, greedy or broken. Each test shows with a well-behaved
// client that the limit hits only those.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server_fixture.h"
#include "base/prng.h"

namespace bmgpu::api {
namespace {

using std::chrono::milliseconds;

using LimitsTest = ServerFixture;

constexpr std::string_view kProto = "application/proto";

ServerLimits quick() {
  ServerLimits limits;
  limits.request_timeout = milliseconds(150);
  limits.bytes_per_second_min = 1'000'000'000;
  return limits;
}

bool works(std::uint16_t port) {
  RawClient client(port);
  return client.call(post("test.Echo/Say", "fine", kProto)).body == "fine";
}

TEST_F(LimitsTest, ClosesClientsThatSendTheirHeadersSlowly) {
  serve(quick());
  RawClient slow(port_);
  const std::string request = post("test.Echo/Say", "x", kProto);
  std::size_t sent = 0;
  const bool closed = eventually([&] {
    slow.send(std::string_view(request).substr(sent, 1));
    sent = std::min(sent + 1, request.size() - 10);  // never the whole of it
    return server_->stats().connections_timed_out_total == 1;
  });
  EXPECT_TRUE(closed);
  EXPECT_TRUE(slow.closed_by_peer());
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, ClosesClientsThatNeverSendTheirBody) {
  serve(quick());
  RawClient slow(port_);
  const std::string request = post("test.Echo/Say", "0123456789", kProto);
  slow.send(std::string_view(request).substr(0, request.size() - 1));
  EXPECT_TRUE(slow.closed_by_peer());
  EXPECT_EQ(server_->stats().connections_timed_out_total, 1U);
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, ClosesClientsThatDoNotTakeTheirAnswer) {
  serve(quick());
  RawClient deaf(port_);
  const std::string request = post("test.Echo/Say", std::string(4'000'000, 'x'), kProto);
  EXPECT_TRUE(eventually(
      [&] { return !deaf.send(request) || server_->stats().connections_timed_out_total == 1; }));
  EXPECT_TRUE(eventually([&] { return server_->stats().connections == 0; }));
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, ClosesIdleConnections) {
  ServerLimits limits;
  limits.idle_timeout = milliseconds(60);
  serve(limits);
  RawClient client(port_);
  EXPECT_EQ(client.call(post("test.Echo/Say", "one", kProto)).body, "one");
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(server_->stats().connections_timed_out_total, 0U);
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, RefusesLargeBodiesUnread) {
  ServerLimits limits;
  limits.body_bytes_max = 1000;
  serve(limits);
  RawClient client(port_);
  EXPECT_EQ(client.call(post("test.Echo/Say", std::string(1000, 'x'), kProto)).body.size(), 1000U);
  client.send(
      "POST /test.Echo/Say HTTP/1.1\r\nHost: t\r\nContent-Type: application/proto\r\n"
      "Authorization: Bearer good\r\nContent-Length: 1000000000000\r\n\r\n");
  const RawResponse refused = client.read_response();
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.headers.at("connection"), "close");
  EXPECT_EQ(refused.body,
            "{\"code\":\"resource_exhausted\",\"message\":\"the body has 1000000000000 bytes; at "
            "most 1000 are accepted here\"}");
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, RefusesLargeChunkedBodies) {
  ServerLimits limits;
  limits.body_bytes_max = 1000;
  serve(limits);
  const std::string head =
      "POST /test.Echo/Say HTTP/1.1\r\nHost: t\r\nContent-Type: application/proto\r\n"
      "Authorization: Bearer good\r\nTransfer-Encoding: chunked\r\n\r\n";
  RawClient client(port_);
  EXPECT_EQ(client.call(head + "3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n").body.size(),
            1000U);
  const RawResponse refused = client.call(head + "3e9\r\n" + std::string(1001, 'x') + "\r\n");
  EXPECT_EQ(refused.status, 413);
  RawClient extended(port_);
  extended.send(head + "1;" + std::string(1'000'000, 'e'));  // a chunk extension that never ends
  EXPECT_TRUE(extended.closed_by_peer());
}

TEST_F(LimitsTest, RefusesLargeHeaders) {
  serve();
  RawClient client(port_);
  const std::string fits = "X-Long: " + std::string(15'000, 'h') + "\r\n";
  EXPECT_EQ(client.call(post("test.Echo/Say", "x", kProto, "good", fits)).status, 200);
  const RawResponse refused = client.call(
      post("test.Echo/Say", "x", kProto, "good", "X-Long: " + std::string(17'000, 'h') + "\r\n"));
  EXPECT_EQ(refused.status, 431);
  EXPECT_NE(refused.body.find("over 16384 bytes"), std::string::npos) << refused.body;
}

TEST_F(LimitsTest, RefusesHeadersThatNeverEnd) {
  serve();
  RawClient client(port_);
  client.send("GET /healthz HTTP/1.1\r\n");
  std::string lines;
  for (int i = 0; i < 5000; ++i) {
    lines += "a:b\r\n";  // each is whole, so the parser holds nothing back
  }
  client.send(lines);
  EXPECT_EQ(client.read_response().status, 431);
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, WholeHeaderLinesBuyNoTime) {
  ServerLimits limits = quick();
  limits.header_bytes_max = 100'000'000;
  serve(limits);
  RawClient slow(port_);
  slow.send("GET /healthz HTTP/1.1\r\n");
  EXPECT_TRUE(eventually([&] {
    slow.send("a:b\r\n");
    return server_->stats().connections_timed_out_total == 1;
  }));
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, RefusesConnectionsBeyondTheLimit) {
  ServerLimits limits;
  limits.connections_max = 3;
  serve(limits);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(port_));
    ASSERT_EQ(clients.back()->call(post("test.Echo/Say", "in", kProto)).body, "in");
  }
  RawClient refused(port_);
  const RawResponse answer = refused.read_response();
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("resource_exhausted"), std::string::npos);
  EXPECT_TRUE(refused.closed_by_peer());
  EXPECT_EQ(server_->stats().connections_refused_total, 1U);
  for (const auto& client : clients) {
    EXPECT_EQ(client->call(post("test.Echo/Say", "still", kProto)).body, "still");
  }
  clients.pop_back();
  EXPECT_TRUE(eventually([this] { return server_->stats().connections == 2; }));
  EXPECT_TRUE(works(port_));
}

// Sockets that exist before the process runs out of descriptors, to be connected then.
class EarlySockets {
 public:
  explicit EarlySockets(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      fds_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
  }
  ~EarlySockets() {
    for (const int fd : fds_) {
      ::close(fd);
    }
  }
  EarlySockets(const EarlySockets&) = delete;
  EarlySockets& operator=(const EarlySockets&) = delete;

  void connect(std::uint16_t port) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{20, 0};
    for (const int fd : fds_) {
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
  }
  bool all_are_served() const {
    for (const int fd : fds_) {
      const std::string request = "GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n";
      char answer[512];
      if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
          ::recv(fd, answer, sizeof answer, 0) <= 0) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<int> fds_;
};

TEST_F(LimitsTest, SurvivesHavingNoFileDescriptorLeft) {
  serve();
  RawClient before(port_);
  ASSERT_EQ(before.call(post("test.Echo/Say", "before", kProto)).body, "before");
  const EarlySockets flood(50);
  rlimit normal{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &normal), 0);
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  rlimit none = normal;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  flood.connect(port_);
  const bool failed = eventually([this] { return server_->stats().accept_errors_total >= 2; });
  const RawResponse during = before.call(post("test.Echo/Say", "during", kProto));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &normal), 0);
  EXPECT_TRUE(failed);
  EXPECT_EQ(during.body, "during");
  EXPECT_TRUE(flood.all_are_served());
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, AnswersForHandlersThatTakeTooLong) {
  ServerLimits limits;
  limits.answer_timeout = milliseconds(60);
  serve(limits);
  RawClient client(port_);
  const RawResponse late = client.call(post("test.Echo/Hold", "", kProto));
  EXPECT_EQ(late.status, 504);
  EXPECT_NE(late.body.find("deadline_exceeded"), std::string::npos);
  held_[0]->reply(std::string("answer to the first request"));
  EXPECT_EQ(client.call(post("test.Echo/Say", "second", kProto)).body, "second");
}

TEST_F(LimitsTest, KeepsToTheClientsOwnTimeout) {
  ServerLimits limits;
  limits.idle_timeout = milliseconds(400);  // makes the edge look every 50 ms
  serve(limits);
  RawClient client(port_);
  EXPECT_EQ(
      client.call(post("test.Echo/Hold", "", kProto, "good", "Connect-Timeout-Ms: 20\r\n")).status,
      504);
}

TEST_F(LimitsTest, RefusesWhatIsNoHttp) {
  serve();
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // a TLS greeting
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\n\r\n"), std::string("GET /a b HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nbad header\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", 28),
        std::string("GET / HTTP/1.1\nHost: t\n\n\n\n\n"),
        // Two lengths are how requests are smuggled past a proxy.
        std::string("POST /test.Echo/Say HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: "
                    "2\r\n\r\nab"),
        std::string("POST /test.Echo/Say HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n0\r\n\r\n"),
        std::string("POST /test.Echo/Say HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string("POST /test.Echo/Say HTTP/1.1\r\nContent-Length: "
                    "99999999999999999999999\r\n\r\n")}) {
    RawClient client(port_);
    client.send(bytes);
    client.shutdown_send();
    const RawResponse refused = client.read_response();
    EXPECT_TRUE(refused.status == 400 || refused.status == 0) << refused.status << " for " << bytes;
    EXPECT_TRUE(client.closed_by_peer()) << bytes;
  }
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, SurvivesRandomBytes) {
  serve();
  const std::string seed = post("test.Echo/Say", "{\"a\":1}", kProto, "good",
                                "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n");
  Prng prng(7);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = seed;
    for (std::uint64_t flips = prng.below(8) + 1; flips > 0; --flips) {
      bytes[prng.below(bytes.size())] = static_cast<char>(prng.below(256));
    }
    RawClient client(port_);
    client.send(bytes);
    client.shutdown_send();
    EXPECT_TRUE(client.closed_by_peer());
  }
  EXPECT_TRUE(works(port_));
}

TEST_F(LimitsTest, ManySlowClientsDoNotDelayOthers) {
  serve();
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<RawClient>(port_));
    slow.back()->send("POST /test.Echo/Say HTTP/1.1\r\nHost: t\r\nX-Slow: ");
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(works(port_));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace bmgpu::api
