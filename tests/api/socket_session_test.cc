#include "api/raw_websocket.h"
#include "api/server_fixture.h"

namespace bmgpu::api {
namespace {

using std::chrono::milliseconds;

class SocketSessionTest : public ServerFixture {
 protected:
  void add_routes(Server& server) override {
    server.socket(
        "test.Socket/Open",
        [this](const Identity& caller, std::shared_ptr<Socket> socket) -> Result<SocketHandler> {
          if (caller.token == 2) {
            return Error{ErrorCode::PermissionDenied, "not for you"};
          }
          const std::lock_guard lock(mutex_);
          sockets_.push_back(std::move(socket));
          return SocketHandler{[this](std::string message) { receive(message); },
                               [this] { ++closed_; }};
        });
  }
  void TearDown() override {
    sockets_.clear();
    ServerFixture::TearDown();
  }
  void receive(const std::string& message) {
    const std::lock_guard lock(mutex_);
    received_.push_back(message);
  }
  std::vector<std::string> received() {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  void open(RawClient& client, std::string_view token = "good") {
    client.send(upgrade_request("test.Socket/Open", token));
    ASSERT_EQ(client.read_response(true).status, 101);
  }
  bool all_given_back() {
    return eventually([this] { return server_->stats().streams == 0; });
  }

  std::vector<std::shared_ptr<Socket>> sockets_;
  std::vector<std::string> received_;
  std::atomic<int> closed_ = 0;
};

TEST_F(SocketSessionTest, CarriesBinaryMessages) {
  serve();
  RawClient client(port_);
  open(client);
  client.send(frame(0x82, "hello"));
  client.send(frame(0x02, "in ") + frame(0x80, "pieces"));
  EXPECT_TRUE(eventually([this] {
    return received() == std::vector<std::string>{"hello", "in pieces"};
  }));
  FrameReader reader(client);
  EXPECT_TRUE(sockets_[0]->send("answer"));
  EXPECT_EQ(reader.next().payload, "answer");
  EXPECT_TRUE(eventually([this] { return sockets_[0]->queued_bytes() == 0; }));
  sockets_[0]->close("done");
  const RawFrame end = reader.next();
  EXPECT_EQ(close_code(end), 1000);
  EXPECT_EQ(end.payload.substr(2), "done");
  EXPECT_FALSE(sockets_[0]->send("late"));
  client.send(frame(0x88, end.payload));
  client.shutdown_send();
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_TRUE(eventually([this] { return closed_ == 1; }));
  EXPECT_TRUE(all_given_back());
}

TEST_F(SocketSessionTest, RefusesBeforeTheUpgrade) {
  serve();
  RawClient client(port_);
  EXPECT_EQ(client.call("GET /test.Socket/Open HTTP/1.1\r\nHost: t\r\n\r\n").status, 426);
  EXPECT_EQ(client.call(post("test.Socket/Open", "", "application/proto")).status, 405);
  EXPECT_EQ(client.call(upgrade_request("test.Socket/Open", "wrong")).status, 401);
  const RawResponse denied = client.call(upgrade_request("test.Socket/Open", "other"));
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(denied.body, "{\"code\":\"permission_denied\",\"message\":\"not for you\"}");
  EXPECT_TRUE(all_given_back());
  open(client);
  EXPECT_EQ(server_->stats().streams, 1U);
}

TEST_F(SocketSessionTest, LimitsSocketsOfOneToken) {
  ServerLimits limits;
  limits.streams_per_token_max = 1;
  serve(limits);
  RawClient first(port_);
  open(first);
  RawClient second(port_);
  const RawResponse refused = second.call(upgrade_request("test.Socket/Open"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("resource_exhausted"), std::string::npos);
  sockets_[0]->close("make room");
  FrameReader reader(first);
  first.send(frame(0x88, reader.next().payload));
  first.shutdown_send();
  ASSERT_TRUE(all_given_back());
  open(second);
}

TEST_F(SocketSessionTest, NeverCompresses) {
  serve();
  RawClient client(port_);
  client.send(upgrade_request("test.Socket/Open", "good",
                              "Sec-WebSocket-Extensions: permessage-deflate\r\n"));
  const RawResponse response = client.read_response(true);
  EXPECT_EQ(response.status, 101);
  EXPECT_FALSE(response.headers.contains("sec-websocket-extensions"));
  client.send(frame(0xc2, "compressed"));  // RSV1: a protocol error then
  EXPECT_EQ(close_code(FrameReader(client).next()), 1002);
  client.shutdown_send();
  EXPECT_TRUE(all_given_back());
}

TEST_F(SocketSessionTest, ClosesOnMessagesOverTheLimit) {
  ServerLimits limits;
  limits.frame_bytes_max = 1000;
  serve(limits);
  RawClient announced(port_);
  open(announced);
  announced.send(frame(0x82, std::string(1000, 'x')));
  EXPECT_TRUE(eventually([this] { return received().size() == 1; }));
  announced.send(frame_head(0x82, std::uint64_t{1} << 40));
  EXPECT_EQ(close_code(FrameReader(announced).next()), 1009);
  announced.shutdown_send();
  RawClient pieces(port_);
  open(pieces);
  pieces.send(frame(0x02, std::string(600, 'x')) + frame(0x80, std::string(600, 'x')));
  EXPECT_EQ(close_code(FrameReader(pieces).next()), 1009);
  pieces.shutdown_send();
  EXPECT_EQ(received().size(), 1U);
  EXPECT_TRUE(all_given_back());
}

TEST_F(SocketSessionTest, ClosesOnWhatIsNoBinaryMessage) {
  serve();
  struct Case {
    std::string bytes;
    int code;
  };
  for (const Case& wrong :
       {Case{frame(0x81, "text"), 1003}, Case{std::string("\x82\x01x", 3), 1002},  // not masked
        Case{frame(0x83, "reserved opcode"), 1002}, Case{frame(0x09, "ping in pieces"), 1002},
        Case{frame(0x80, "nothing to go on with"), 1002}}) {
    RawClient client(port_);
    open(client);
    client.send(wrong.bytes);
    EXPECT_EQ(close_code(FrameReader(client).next()), wrong.code);
  }
  EXPECT_TRUE(received().empty());
}

TEST_F(SocketSessionTest, LearnsThatThePeerIsGone) {
  serve();
  {
    RawClient client(port_);
    open(client);
  }
  EXPECT_TRUE(eventually([this] { return closed_ == 1; }));
  EXPECT_FALSE(sockets_[0]->send("anyone?"));
  EXPECT_TRUE(all_given_back());
}

TEST_F(SocketSessionTest, PingsAndGivesUpSilentPeers) {
  ServerLimits limits;
  limits.keep_alive = milliseconds(50);
  serve(limits);
  RawClient client(port_);
  open(client);
  FrameReader reader(client);
  const RawFrame ping = reader.next();
  EXPECT_EQ(ping.opcode, 9);
  client.send(frame(0x8a, ping.payload));
  EXPECT_EQ(reader.next().opcode, 9);    // answered: asked again
  EXPECT_TRUE(client.closed_by_peer());  // not answered
  EXPECT_TRUE(eventually([this] { return closed_ == 1; }));
}

TEST_F(SocketSessionTest, ClosesSocketsOfSlowReaders) {
  ServerLimits limits;
  limits.send_queue_bytes_max = 1'000'000;
  serve(limits);
  RawClient slow(port_);
  open(slow);
  const std::string message(100'000, 'm');
  EXPECT_TRUE(eventually([&] { return !sockets_[0]->send(message); }));
  FrameReader reader(slow);
  RawFrame last = reader.next();
  while (last.opcode == 2) {
    last = reader.next();
  }
  EXPECT_EQ(close_code(last), 1008);
}

TEST_F(SocketSessionTest, PauseHoldsTheSenderBack) {
  serve();
  RawClient client(port_);
  open(client);
  client.send(frame(0x82, "one"));
  ASSERT_TRUE(eventually([this] { return received().size() == 1; }));
  sockets_[0]->pause();
  sockets_[0]->send("paused");
  FrameReader reader(client);
  ASSERT_EQ(reader.next().payload, "paused");
  // The read that was under way when it was paused may take one more message.
  client.send(frame(0x82, "two") + frame(0x82, "three"));
  sockets_[0]->send("still");
  ASSERT_EQ(reader.next().payload, "still");
  EXPECT_LE(received().size(), 2U);
  sockets_[0]->resume();
  EXPECT_TRUE(eventually([this] {
    return received() == std::vector<std::string>{"one", "two", "three"};
  }));
}

TEST_F(SocketSessionTest, SaysGoodbyeWhenTheServerStops) {
  serve();
  RawClient client(port_);
  open(client);
  std::thread stopper([this] { server_->stop(); });
  const RawFrame end = FrameReader(client).next();
  EXPECT_EQ(close_code(end), 1001);
  client.send(frame(0x88, end.payload));
  client.shutdown_send();
  stopper.join();
  EXPECT_EQ(closed_, 1);
}

TEST_F(SocketSessionTest, ClosesSocketsOfARevokedToken) {
  serve();
  RawClient client(port_);
  open(client);
  server_->drop_token(2);
  sockets_[0]->send("not yet");
  FrameReader reader(client);
  EXPECT_EQ(reader.next().payload, "not yet");
  server_->drop_token(1);
  EXPECT_EQ(close_code(reader.next()), 1008);
}

}  // namespace
}  // namespace bmgpu::api
