#include "api/server.h"

#include "api/server_fixture.h"

namespace bmgpu::api {
namespace {

using ServerTest = ServerFixture;

constexpr std::string_view kProto = "application/proto";
constexpr std::string_view kJson = "application/json";

TEST_F(ServerTest, AnswersUnaryCallsOnOneConnection) {
  serve();
  RawClient client(port_);
  for (const std::string_view type : {kProto, kJson}) {
    const RawResponse response = client.call(post("test.Echo/Say", "{\"a\":1}", type));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.headers.at("content-type"), type);
    EXPECT_EQ(response.body, "{\"a\":1}");
  }
  EXPECT_EQ(server_->stats().connections_accepted_total, 1U);
  EXPECT_EQ(server_->stats().requests_total, 2U);
}

TEST_F(ServerTest, PassesKeyCallerAndPeer) {
  serve();
  RawClient client(port_);
  const RawResponse response =
      client.call(post("test.Echo/Key", "", kProto, "other", "Idempotency-Key: order 7~\r\n"));
  EXPECT_EQ(response.body, "[order 7~] account 12 from 127.0.0.1");
  EXPECT_EQ(client.call(post("test.Echo/Key", "", kProto)).body, "[] account 11 from 127.0.0.1");
}

TEST_F(ServerTest, RefusesKeysThatAreNoKeys) {
  serve();
  RawClient client(port_);
  const std::string longest(128, 'k');
  EXPECT_EQ(
      client.call(post("test.Echo/Key", "", kProto, "good", "Idempotency-Key: " + longest + "\r\n"))
          .status,
      200);
  for (const std::string& lines :
       {"Idempotency-Key: " + longest + "k\r\n", std::string("Idempotency-Key: \r\n"),
        std::string("Idempotency-Key: \xc3\xa4\r\n"),
        std::string("Idempotency-Key: a\r\nIdempotency-Key: b\r\n")}) {
    const RawResponse response = client.call(post("test.Echo/Key", "", kProto, "good", lines));
    EXPECT_EQ(response.status, 400) << lines;
    EXPECT_NE(response.body.find("1 to 128 printable"), std::string::npos) << response.body;
  }
}

TEST_F(ServerTest, AnswersErrorsAsConnectDoes) {
  serve();
  RawClient client(port_);
  const RawResponse response = client.call(post("test.Echo/Fail", "", kProto));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.headers.at("content-type"), kJson);
  EXPECT_EQ(response.body, "{\"code\":\"not_found\",\"message\":\"no such \\\"order\\\"\"}");
  EXPECT_EQ(client.call(post("test.Echo/Drop", "", kProto)).status, 500);
}

TEST_F(ServerTest, WantsAToken) {
  serve();
  RawClient client(port_);
  const RawResponse missing = client.call(post("test.Echo/Say", "", kProto, ""));
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.headers.at("www-authenticate"), "Bearer");
  EXPECT_NE(missing.body.find("unauthenticated"), std::string::npos);
  EXPECT_EQ(client.call(post("test.Echo/Say", "", kProto, "wrong")).status, 401);
  EXPECT_EQ(
      client.call(post("test.Echo/Say", "", kProto, "", "Authorization: Basic Z29v\r\n")).status,
      401);
  EXPECT_EQ(
      client.call(post("test.Echo/Say", "x", kProto, "", "authorization: BEARER good\r\n")).status,
      200);
}

TEST_F(ServerTest, SaysWhatIsWrongWithARequest) {
  serve();
  RawClient client(port_);
  EXPECT_EQ(client.call(post("test.Echo/None", "", kProto)).status, 404);
  EXPECT_EQ(client.call("GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n").status, 404);
  client.send("HEAD /nothing HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.read_response(true).status, 404);
  const RawResponse wrong_method = client.call("GET /test.Echo/Say HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(wrong_method.headers.at("allow"), "POST");
  const RawResponse wrong_type = client.call(post("test.Echo/Say", "", "text/plain"));
  EXPECT_EQ(wrong_type.status, 415);
  EXPECT_EQ(wrong_type.headers.at("accept-post"), "application/json, application/proto");
  EXPECT_EQ(
      client.call(post("test.Echo/Say", "", kProto, "good", "Content-Encoding: gzip\r\n")).status,
      415);
  EXPECT_EQ(client.call(post("test.Echo/Say", "still here", kProto)).body, "still here");
}

TEST_F(ServerTest, ShowsPagesToEverybody) {
  serve();
  RawClient client(port_);
  const RawResponse page = client.call("GET /healthz?verbose HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, "ok\n");
  EXPECT_EQ(client.call("GET /readyz HTTP/1.1\r\nHost: t\r\n\r\n").status, 503);
  client.send("HEAD /healthz HTTP/1.1\r\nHost: t\r\n\r\n");
  const RawResponse head = client.read_response(true);
  EXPECT_EQ(head.headers.at("content-length"), "3");
  const RawResponse posted = client.call(post("healthz", "", kProto));
  EXPECT_EQ(posted.status, 405);
  EXPECT_EQ(posted.headers.at("allow"), "GET, HEAD");
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  serve();
  RawClient client(port_);
  std::string requests;
  for (int i = 0; i < 50; ++i) {
    requests += post("test.Echo/Say", std::to_string(i), kProto);
    requests += "GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n";
  }
  client.send(requests);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(client.read_response().body, std::to_string(i));
    ASSERT_EQ(client.read_response().body, "ok\n");
  }
}

TEST_F(ServerTest, TakesAnswersFromAnyThread) {
  serve();
  constexpr std::size_t kClients = 20;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<RawClient>(port_));
    clients.back()->send(post("test.Echo/Hold", "", kProto));
  }
  ASSERT_TRUE(eventually([this] { return held_count() == kClients; }));
  std::thread other([this] {
    for (const auto& replier : held_) {
      replier->reply(std::string("late"));
      replier->reply(std::string("twice is ignored"));
    }
  });
  other.join();
  for (const auto& client : clients) {
    EXPECT_EQ(client->read_response().body, "late");
    EXPECT_EQ(client->call(post("test.Echo/Say", "next", kProto)).body, "next");
  }
}

TEST_F(ServerTest, AcceptsChunkedAndExpectedBodies) {
  serve();
  RawClient client(port_);
  const std::string head =
      "POST /test.Echo/Say HTTP/1.1\r\nHost: t\r\nContent-Type: application/proto\r\n"
      "Authorization: Bearer good\r\n";
  EXPECT_EQ(
      client.call(head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").body,
      "abcde");
  client.send(head + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read_response(true).status, 100);
  client.send("abc");
  EXPECT_EQ(client.read_response().body, "abc");
}

TEST_F(ServerTest, LetsAnswersGoOutWhenItStops) {
  serve();
  RawClient client(port_);
  client.send(post("test.Echo/Hold", "", kProto));
  ASSERT_TRUE(eventually([this] { return held_count() == 1; }));
  std::thread stopper([this] { server_->stop(); });
  ASSERT_TRUE(eventually([this] { return !RawClient(port_).connected(); }));
  held_[0]->reply(std::string("last words"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.body, "last words");
  EXPECT_EQ(response.headers.at("connection"), "close");
  client.shutdown_send();
  stopper.join();
}

TEST_F(ServerTest, HandlesMayOutliveTheServer) {
  serve();
  RawClient client(port_);
  client.send(post("test.Echo/Hold", "", kProto));
  ASSERT_TRUE(eventually([this] { return held_count() == 1; }));
  server_->stop();
  server_.reset();
  held_[0]->reply(std::string("nobody listens"));
}

TEST_F(ServerTest, RefusesToListenInTheOpenWithoutTls) {
  serve();
  auto server = Server::create({}, authenticate_for_test);
  ListenerOptions options;
  options.address = "0.0.0.0";
  const auto refused = (*server)->listen(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(refused.error().message.find("needs TLS"), std::string::npos);
  options.address = "localhost:80";
  EXPECT_EQ((*server)->listen(options).error().code, ErrorCode::InvalidArgument);
  options.address = "127.0.0.1";
  options.port = port_;
  EXPECT_EQ((*server)->listen(options).error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace bmgpu::api
