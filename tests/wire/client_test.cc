#include "wire/client.h"

#include <gmock/gmock.h>

#include <condition_variable>

#include "api/server_fixture.h"
#include "api/temporary_folder.h"
#include "api/tls.h"
#include "api/typed.h"
#include "bmgpu/v1/market.pb.h"
#include "wire/hash.h"
#include "wire/web_address.h"

namespace bmgpu::wire {
namespace {

using api::Server;
using api::ServerLimits;
using ::testing::HasSubstr;

// Messages and the end of a WebSocket, awaited.
class Inbox {
 public:
  WebSocketClient::Callbacks callbacks() {
    return {[this](std::string message) { add(std::move(message)); },
            [this](Error why) { finish(std::move(why)); }};
  }
  std::string next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !messages_.empty(); });
    if (messages_.empty()) {
      return "(nothing came)";
    }
    std::string first = messages_.front();
    messages_.erase(messages_.begin());
    return first;
  }
  std::string end() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [this] { return end_.has_value(); });
    return end_ ? end_->message : "(not closed)";
  }

 private:
  void add(std::string message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }
  void finish(Error why) {
    const std::lock_guard lock(mutex_);
    end_ = std::move(why);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> messages_;
  std::optional<Error> end_;
};

class ClientTest : public api::ServerFixture {
 protected:
  void add_routes(Server& server) override {
    api::bind_unary<v1::GetOrderRequest, v1::Order>(
        server, "test.Typed/Get",
        [](v1::GetOrderRequest request, api::Request metadata, api::TypedReplier<v1::Order> out) {
          if (request.id() == "none") {
            out.reply(Error{ErrorCode::Refused, "not that one"});
            return;
          }
          v1::Order order;
          order.set_id(request.id());
          order.set_name(metadata.idempotency_key);
          out.reply(order);
        });
    api::bind_stream<v1::StreamLogsRequest, v1::LogChunk>(
        server, "test.Typed/Logs",
        [](v1::StreamLogsRequest request, api::Request, api::TypedStream<v1::LogChunk> out) {
          for (std::uint64_t i = 1; i <= request.tail(); ++i) {
            v1::LogChunk chunk;
            chunk.add_lines()->set_sequence(i);
            out.send(chunk);
          }
          if (request.id() == "none") {
            out.finish(Error{ErrorCode::NotFound, "no such log"});
          } else {
            out.finish({});
          }
        });
    server.stream("test.Stream/Hold", [this](api::Request, std::shared_ptr<api::Stream> stream) {
      const std::lock_guard lock(mutex_);  // until stream_ can be found
      stream->send("first");
      stream_ = std::move(stream);
    });
    server.socket("test.Socket/Echo",
                  [](const api::Identity& caller,
                     std::shared_ptr<api::Socket> socket) -> Result<api::SocketHandler> {
                    if (caller.token == 2) {
                      return Error{ErrorCode::PermissionDenied, "not for you"};
                    }
                    return api::SocketHandler{[socket](std::string message) {
                                                if (message == "bye") {
                                                  socket->close("as you wish");
                                                } else {
                                                  socket->send(std::move(message));
                                                }
                                              },
                                              [] {}};
                  });
    Server::Blobs blobs;
    blobs.directory = folder_.file("blobs");
    blobs.may_put = [](const api::Identity& caller) { return caller.token == 1; };
    blobs.may_get = [](const api::Identity&) { return true; };
    server.blobs(std::move(blobs));
  }

  Endpoint endpoint(std::string bearer = "good") {
    return {"http://127.0.0.1:" + std::to_string(port_), "", std::move(bearer)};
  }
  std::unique_ptr<Client> client(std::string bearer = "good") {
    auto made = Client::create(endpoint(std::move(bearer)));
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

  api::TemporaryFolder folder_;
  std::shared_ptr<api::Stream> stream_;
};

TEST_F(ClientTest, CallsTypedHandlers) {
  serve();
  const auto calls = client();
  v1::GetOrderRequest request;
  v1::Order order;
  for (int i = 0; i < 3; ++i) {
    request.set_id("order-" + std::to_string(i));
    ASSERT_TRUE(calls->call("test.Typed/Get", request, order, "key-7").ok());
    EXPECT_EQ(order.id(), request.id());
    EXPECT_EQ(order.name(), "key-7");
  }
  request.set_id("none");
  EXPECT_EQ(calls->call("test.Typed/Get", request, order).error(),
            (Error{ErrorCode::Refused, "not that one"}));
  EXPECT_EQ(calls->call("test.Typed/Nothing", request, order).error().code, ErrorCode::NotFound);
  EXPECT_EQ(client("wrong")->call("test.Typed/Get", request, order).error().code,
            ErrorCode::Unauthenticated);
  EXPECT_EQ(server_->stats().connections_accepted_total, 2U);
}

TEST_F(ClientTest, TypedHandlersNeverSeeWhatDoesNotDecode) {
  serve();
  api::RawClient raw(port_);
  const auto unknown = raw.call(api::post("test.Typed/Get", "{\"idd\":1}", "application/json"));
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("idd"));
  EXPECT_EQ(raw.call(api::post("test.Typed/Get", "\xff\xff", "application/proto")).status, 400);
  EXPECT_EQ(
      raw.call(api::post("test.Typed/Get", "{\"id\":\"order-1\"}", "application/json")).status,
      200);
}

TEST_F(ClientTest, ConnectsAgainWhenAKeptConnectionWasClosed) {
  ServerLimits limits;
  limits.idle_timeout = std::chrono::milliseconds(40);
  serve(limits);
  const auto calls = client();
  v1::GetOrderRequest request;
  v1::Order order;
  ASSERT_TRUE(calls->call("test.Typed/Get", request, order).ok());
  ASSERT_TRUE(api::eventually([this] { return server_->stats().connections == 0; }));
  EXPECT_TRUE(calls->call("test.Typed/Get", request, order).ok());
}

TEST_F(ClientTest, SaysWhenNobodyAnswers) {
  serve();
  const auto calls = client();
  v1::GetOrderRequest request;
  v1::Order order;
  EXPECT_EQ(
      calls->call("test.Echo/Hold", request, order, {}, std::chrono::milliseconds(30)).error().code,
      ErrorCode::DeadlineExceeded);
  EXPECT_TRUE(calls->call("test.Typed/Get", request, order).ok());
  server_->stop();
  const Result<void> gone = calls->call("test.Typed/Get", request, order);
  EXPECT_EQ(gone.error().code, ErrorCode::Unavailable);
  EXPECT_THAT(gone.error().message, HasSubstr("cannot reach 127.0.0.1"));
}

TEST_F(ClientTest, FollowsStreamsToTheirOutcome) {
  serve();
  const auto calls = client();
  v1::StreamLogsRequest request;
  request.set_tail(1000);
  for (int round = 0; round < 2; ++round) {
    std::uint64_t next = 1;
    const Result<void> outcome =
        calls->stream("test.Typed/Logs", request, [&](std::string_view bytes) {
          v1::LogChunk chunk;
          EXPECT_TRUE(decode_answer(bytes, chunk).ok());
          EXPECT_EQ(chunk.lines(0).sequence(), next++);
          return true;
        });
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(next, 1001U);
  }
  EXPECT_EQ(server_->stats().connections_accepted_total, 1U);
  int seen = 0;
  EXPECT_TRUE(
      calls->stream("test.Typed/Logs", request, [&](std::string_view) { return ++seen < 10; })
          .ok());
  EXPECT_EQ(seen, 10);
  request.set_id("none");
  EXPECT_EQ(
      calls->stream("test.Typed/Logs", request, [](std::string_view) { return true; }).error(),
      (Error{ErrorCode::NotFound, "no such log"}));
  EXPECT_EQ(client("wrong")
                ->stream("test.Typed/Logs", request, [](std::string_view) { return true; })
                .error()
                .code,
            ErrorCode::Unauthenticated);
  EXPECT_TRUE(api::eventually([this] { return server_->stats().streams == 0; }));
}

// The stream ends only once its message was seen: holding it back would wait for ever.
TEST_F(ClientTest, HandsOnAMessageAsSoonAsItCame) {
  serve();
  int seen = 0;
  const Result<void> outcome =
      client()->stream("test.Stream/Hold", v1::GetOrderRequest(), [&](std::string_view bytes) {
        EXPECT_EQ(bytes, "first");
        ++seen;
        const std::lock_guard lock(mutex_);
        stream_->finish({});
        return true;
      });
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(seen, 1);
}

TEST_F(ClientTest, CarriesWebSocketMessagesBothWays) {
  serve();
  Inbox inbox;
  auto socket = WebSocketClient::connect(endpoint(), "test.Socket/Echo", inbox.callbacks(),
                                         std::chrono::seconds(10));
  ASSERT_TRUE(socket.ok()) << socket.error().message;
  const std::string large(3'000'000, 'x');
  EXPECT_TRUE((*socket)->send("one"));
  EXPECT_TRUE((*socket)->send(large));
  EXPECT_TRUE((*socket)->send(""));
  EXPECT_EQ(inbox.next(), "one");
  EXPECT_EQ(inbox.next(), large);
  EXPECT_EQ(inbox.next(), "");
  EXPECT_EQ(server_->stats().streams, 1U);
  EXPECT_TRUE((*socket)->send("bye"));
  EXPECT_THAT(inbox.end(), HasSubstr("as you wish"));
  EXPECT_FALSE((*socket)->send("late"));
  EXPECT_TRUE(api::eventually([this] { return server_->stats().streams == 0; }));
}

TEST_F(ClientTest, WhatWasSentBeforeCloseArrives) {
  serve();
  Inbox inbox;
  auto socket = WebSocketClient::connect(endpoint(), "test.Socket/Echo", inbox.callbacks(),
                                         std::chrono::seconds(10));
  ASSERT_TRUE(socket.ok());
  EXPECT_TRUE((*socket)->send("last"));
  EXPECT_EQ(inbox.next(), "last");
  (*socket)->close();
  EXPECT_THAT(inbox.end(), HasSubstr("closed on this side"));
}

TEST_F(ClientTest, ShowsWhyAWebSocketWasRefused) {
  serve();
  const auto open = [this](std::string bearer, std::string_view method) {
    return WebSocketClient::connect(endpoint(std::move(bearer)), method,
                                    {[](std::string) {}, [](Error) {}}, std::chrono::seconds(10));
  };
  EXPECT_TRUE(open("good", "test.Socket/Echo").ok());
  EXPECT_EQ(open("other", "test.Socket/Echo").error(),
            (Error{ErrorCode::PermissionDenied, "not for you"}));
  EXPECT_EQ(open("wrong", "test.Socket/Echo").error().code, ErrorCode::Unauthenticated);
  EXPECT_EQ(open("good", "test.Socket/None").error().code, ErrorCode::NotFound);
}

TEST_F(ClientTest, MovesFiles) {
  serve();
  const auto calls = client();
  const std::string content(1'500'000, 'b');
  std::ofstream(folder_.file("source")) << content;
  const std::string path = "/blobs/" + hex(sha256(content));
  std::size_t progress = 0;
  const Result<void> stored =
      calls->put_file(path, folder_.file("source"), [&](std::size_t sent) { progress = sent; });
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  EXPECT_EQ(progress, content.size());
  ASSERT_TRUE(calls->get_file(path, folder_.file("copy")).ok());
  EXPECT_EQ(api::TemporaryFolder::read(folder_.file("copy")), content);
  EXPECT_EQ(server_->stats().connections_accepted_total, 1U);

  std::ofstream(folder_.file("empty"));
  EXPECT_TRUE(calls->put_file("/blobs/" + hex(sha256("")), folder_.file("empty"), {}).ok());
  EXPECT_TRUE(calls->get_file("/blobs/" + hex(sha256("")), folder_.file("empty2")).ok());

  const std::string other = "/blobs/" + hex(sha256("other"));
  EXPECT_EQ(calls->put_file(other, folder_.file("source"), {}).error().code,
            ErrorCode::InvalidArgument);
  EXPECT_EQ(calls->get_file(other, folder_.file("none")).error().code, ErrorCode::NotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("none")));
  EXPECT_EQ(client("other")->put_file(path, folder_.file("source"), {}).error().code,
            ErrorCode::PermissionDenied);
  EXPECT_EQ(calls->put_file(path, folder_.file("missing"), {}).error().code, ErrorCode::NotFound);
}

TEST_F(ClientTest, RefusesDamagedFiles) {
  serve();
  const std::string name = hex(sha256("right"));
  std::ofstream(folder_.file("blobs/" + name)) << "wrong";
  EXPECT_EQ(client()->get_file("/blobs/" + name, folder_.file("copy")).error().code,
            ErrorCode::DataLoss);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("copy")));
}

class TlsClientTest : public ClientTest {
 protected:
  void serve_tls(const std::vector<std::string>& names = {}) {
    const auto made =
        api::ensure_self_made_tls(folder_.file("tls"), names, std::chrono::system_clock::now());
    ASSERT_TRUE(made.ok()) << made.error().message;
    identity_ = *made;
    serve({}, identity_.files);
  }
  Result<void> get(std::string host, std::string ca_sha256) {
    auto made =
        Client::create({"https://" + host + ":" + std::to_string(port_), ca_sha256, "good"});
    if (!made.ok()) {
      return made.error();
    }
    v1::GetOrderRequest request;
    v1::Order order;
    return (*made)->call("test.Typed/Get", request, order);
  }
  api::TlsIdentity identity_;
};

TEST_F(TlsClientTest, TrustsTheMarketsOwnCa) {
  serve_tls();
  EXPECT_TRUE(get("127.0.0.1", identity_.ca_sha256).ok());
  EXPECT_TRUE(get("localhost", identity_.ca_sha256).ok());
  EXPECT_EQ(
      *shown_ca_sha256("https://127.0.0.1:" + std::to_string(port_), std::chrono::seconds(10)),
      identity_.ca_sha256);
  Inbox inbox;
  auto socket = WebSocketClient::connect(
      {"https://127.0.0.1:" + std::to_string(port_), identity_.ca_sha256, "good"},
      "test.Socket/Echo", inbox.callbacks(), std::chrono::seconds(10));
  ASSERT_TRUE(socket.ok()) << socket.error().message;
  (*socket)->send("secret");
  EXPECT_EQ(inbox.next(), "secret");
}

TEST_F(TlsClientTest, TrustsNoOtherCa) {
  serve_tls();
  const Result<void> refused = get("127.0.0.1", std::string(64, '0'));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("does not come from this market's CA"));
  EXPECT_EQ(get("127.0.0.1", "").error().code, ErrorCode::InvalidArgument);
}

TEST_F(TlsClientTest, ChecksTheHost) {
  address_ = "127.0.0.2";
  serve_tls();
  const Result<void> refused = get("127.0.0.2", identity_.ca_sha256);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("is not valid: IP address mismatch"));
}

TEST_F(TlsClientTest, TakesAHostThatTheCertificateNames) {
  address_ = "127.0.0.2";
  serve_tls({"127.0.0.2"});
  EXPECT_TRUE(get("127.0.0.2", identity_.ca_sha256).ok());
}

TEST(EndpointTest, RefusesWhatIsNoMarket) {
  const auto made = [](std::string url, std::string ca = "", std::string bearer = "t") {
    return Client::create({std::move(url), std::move(ca), std::move(bearer)});
  };
  EXPECT_TRUE(made("http://127.0.0.1:1").ok());
  EXPECT_TRUE(made("https://market.example", std::string(64, 'a')).ok());
  for (const char* url : {"", "market", "ftp://a", "http://", "http://a:0", "http://a:65536",
                          "http://a:1/x", "http://u@a:1", "http://a b", "http://[::1", "http://[a]",
                          "http://a:1:2", "http://a\r\nX: y"}) {
    EXPECT_EQ(made(url).error().code, ErrorCode::InvalidArgument) << url;
  }
  EXPECT_FALSE(made("https://a").ok());
  EXPECT_FALSE(made("https://a", std::string(63, 'a')).ok());
  EXPECT_FALSE(made("http://127.0.0.1:1", "", "with\nbreak").ok());
}

TEST(EndpointTest, SendsNoTokenInTheOpen) {
  auto made = Client::create({"http://192.0.2.1:9", "", "token"});
  ASSERT_TRUE(made.ok());
  v1::GetOrderRequest request;
  v1::Order order;
  const Result<void> refused = (*made)->call("x", request, order);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("only https"));
}

TEST(EndpointTest, ReadsIpv6) {
  const auto address = parse_url("https://[::1]:8443/");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->authority(), "[::1]:8443");
}

}  // namespace
}  // namespace bmgpu::wire
