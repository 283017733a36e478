#include "api/server_fixture.h"
#include "wire/connect.h"

namespace bmgpu::api {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kStreamProto = "application/connect+proto";
constexpr std::string_view kStreamJson = "application/connect+json";

class ServerStreamTest : public ServerFixture {
 protected:
  void add_routes(Server& server) override {
    server.stream("test.Stream/Open", [this](Request request, std::shared_ptr<Stream> stream) {
      if (request.body == "now") {
        stream->send("one");
        stream->send("two");
        stream->finish({});
        stream->finish(Error{ErrorCode::Internal, "only the first end counts"});
      } else if (request.body == "fail") {
        stream->finish(Error{ErrorCode::NotFound, "no log"});
      } else if (request.body != "drop") {
        const std::lock_guard lock(mutex_);
        streams_.push_back(std::move(stream));
      }
    });
  }
  void TearDown() override {
    streams_.clear();
    ServerFixture::TearDown();
  }

  static std::string open(std::string_view body, std::string_view type = kStreamProto,
                          std::string_view token = "good") {
    std::string envelope;
    wire::append_envelope(envelope, 0, body);
    return post("test.Stream/Open", envelope, type, token);
  }
  std::size_t open_streams() {
    const std::lock_guard lock(mutex_);
    return streams_.size();
  }
  // Messages and then the outcome, "one|two|{}".
  static std::string contents(const RawResponse& response) {
    wire::EnvelopeReader reader(1'000'000);
    reader.add(response.body);
    std::string text;
    for (;;) {
      const auto next = reader.next();
      if (!next.ok() || !next->has_value()) {
        return text;
      }
      text += (text.empty() ? "" : "|") + (**next).message;
    }
  }

  std::vector<std::shared_ptr<Stream>> streams_;
};

TEST_F(ServerStreamTest, SendsMessagesThenTheOutcome) {
  serve();
  RawClient client(port_);
  const RawResponse response = client.call(open("now"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), kStreamProto);
  EXPECT_EQ(contents(response), "one|two|{}");
  EXPECT_EQ(contents(client.call(open("fail"))),
            R"({"error":{"code":"not_found","message":"no log"}})");
  EXPECT_NE(contents(client.call(open("drop"))).find("\"internal\""), std::string::npos);
  EXPECT_EQ(client.call(post("test.Echo/Say", "next", "application/proto")).body, "next");
  EXPECT_EQ(server_->stats().streams, 0U);
}

TEST_F(ServerStreamTest, RefusesWhatIsNoStreamRequest) {
  serve();
  RawClient client(port_);
  EXPECT_EQ(client.call(post("test.Stream/Open", "", "application/proto")).status, 415);
  EXPECT_NE(contents(client.call(open("now", kStreamProto, "wrong"))).find("unauthenticated"),
            std::string::npos);
  for (const std::string& body : {std::string(), std::string("now"), std::string(5, '\xff'),
                                  std::string("\x01\0\0\0\0", 5), std::string("\0\0\0\0\0x", 6)}) {
    EXPECT_NE(contents(client.call(post("test.Stream/Open", body, kStreamProto)))
                  .find("invalid_argument"),
              std::string::npos);
  }
  EXPECT_EQ(contents(client.call(open("now"))), "one|two|{}");
  std::string old = open("now");
  old.replace(old.find("HTTP/1.1"), 8, "HTTP/1.0");
  EXPECT_EQ(client.call(old).status, 505);
}

TEST_F(ServerStreamTest, KeepsQuietStreamsAlive) {
  ServerLimits limits;
  limits.keep_alive = milliseconds(30);
  serve(limits);
  for (const std::string_view type : {kStreamProto, kStreamJson}) {
    RawClient client(port_);
    client.send(open("hold", type));
    std::string seen;
    const std::string expected =
        type == kStreamJson ? std::string("\0\0\0\0\x02{}", 7) : std::string(5, '\0');
    EXPECT_TRUE(eventually([&] {
      seen += client.read_some();
      return seen.find("\r\n" + expected + "\r\n") != std::string::npos;
    }));
  }
}

TEST_F(ServerStreamTest, LimitsStreamsOfOneToken) {
  ServerLimits limits;
  limits.streams_per_token_max = 2;
  serve(limits);
  RawClient first(port_);
  RawClient second(port_);
  first.send(open("hold"));
  second.send(open("hold"));
  ASSERT_TRUE(eventually([this] { return open_streams() == 2; }));
  RawClient third(port_);
  EXPECT_NE(contents(third.call(open("now"))).find("resource_exhausted"), std::string::npos);
  EXPECT_EQ(contents(third.call(open("now", kStreamProto, "other"))), "one|two|{}");
  streams_[0]->finish({});
  EXPECT_EQ(contents(first.read_response()), "{}");
  EXPECT_EQ(contents(third.call(open("now"))), "one|two|{}");
}

TEST_F(ServerStreamTest, LearnsThatTheClientIsGone) {
  serve();
  {
    RawClient client(port_);
    client.send(open("hold"));
    ASSERT_TRUE(eventually([this] { return open_streams() == 1; }));
    EXPECT_TRUE(streams_[0]->send("still here"));
  }
  EXPECT_TRUE(eventually([this] { return streams_[0]->closed(); }));
  EXPECT_FALSE(streams_[0]->send("anyone?"));
  EXPECT_TRUE(eventually([this] { return server_->stats().streams == 0; }));
}

TEST_F(ServerStreamTest, EndsStreamsOfSlowReaders) {
  ServerLimits limits;
  limits.send_queue_bytes_max = 1'000'000;
  serve(limits);
  RawClient slow(port_);
  slow.send(open("hold"));
  ASSERT_TRUE(eventually([this] { return open_streams() == 1; }));
  const std::string message(100'000, 'm');
  EXPECT_TRUE(eventually([&] { return !streams_[0]->send(message); }));
  EXPECT_LE(streams_[0]->queued_bytes(), 2'000'000U);
  EXPECT_TRUE(streams_[0]->closed());
  const std::string all = contents(slow.read_response());
  EXPECT_NE(all.find("too slowly"), std::string::npos);
}

TEST_F(ServerStreamTest, CountsWhatWaits) {
  serve();
  RawClient client(port_);
  client.send(open("hold"));
  ASSERT_TRUE(eventually([this] { return open_streams() == 1; }));
  EXPECT_TRUE(streams_[0]->send(std::string(1000, 'm')));
  EXPECT_TRUE(eventually([this] { return streams_[0]->queued_bytes() == 0; }));
}

TEST_F(ServerStreamTest, EndsStreamsWhenTheServerStops) {
  serve();
  RawClient client(port_);
  client.send(open("hold"));
  ASSERT_TRUE(eventually([this] { return open_streams() == 1; }));
  std::thread stopper([this] { server_->stop(); });
  EXPECT_NE(contents(client.read_response()).find("\"unavailable\""), std::string::npos);
  client.shutdown_send();
  stopper.join();
  EXPECT_TRUE(streams_[0]->closed());
}

TEST_F(ServerStreamTest, EndsStreamsOfARevokedToken) {
  serve();
  RawClient mine(port_);
  RawClient others(port_);
  mine.send(open("hold"));
  others.send(open("hold", kStreamProto, "other"));
  ASSERT_TRUE(eventually([this] { return open_streams() == 2; }));
  server_->drop_token(1);
  EXPECT_TRUE(mine.closed_by_peer());
  EXPECT_EQ(server_->stats().streams, 1U);
}

}  // namespace
}  // namespace bmgpu::api
