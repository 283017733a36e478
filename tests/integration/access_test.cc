// Who may do what: tokens, roles, idempotency keys, bad input.
#include <sys/stat.h>

#include <atomic>
#include <future>
#include <map>

#include "integration/market_fixture.h"

namespace bmgpu::integration {
namespace {

class AccessTest : public MarketTest {
 protected:
  AccessTest() : MarketTest("images: {\"pytorch:2.0\": \"localhost/pytorch:2.0\"}") {}
};

ErrorCode code_of(const Result<void>& result) {
  return result ? ErrorCode::Internal : result.error().code;
}

TEST_F(AccessTest, FirstStartWritesAnOperatorTokenForOneselfOnly) {
  struct stat info {};
  ASSERT_EQ(stat((bmd.state_dir() + "/operator.token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  v1::GetInfoResponse who;
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who));
  EXPECT_EQ(who.role(), v1::ROLE_OPERATOR);
  EXPECT_EQ(who.image_aliases().at("pytorch:2.0"), "localhost/pytorch:2.0");
}

TEST_F(AccessTest, RefusesWrongAndRevokedTokens) {
  v1::GetInfoResponse who;
  const auto info = [&](wire::Client& client) {
    return client.call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who);
  };
  EXPECT_EQ(code_of(info(*bmd.client("bm1_tenant_00"))), ErrorCode::Unauthenticated);
  const v1::CreateTokenResponse created = create_token(v1::ROLE_TENANT, "alice");
  const std::unique_ptr<wire::Client> alice = bmd.client(created.secret());
  EXPECT_TRUE(info(*alice));
  v1::RevokeTokenRequest revoke;
  revoke.set_id("alice");
  v1::Token token;
  ASSERT_TRUE(
      bmd.operator_client()->call("bmgpu.v1.Market/RevokeToken", revoke, token, "revoke-1"));
  EXPECT_TRUE(token.revoked());
  EXPECT_EQ(code_of(info(*alice)), ErrorCode::Unauthenticated);
  ASSERT_EQ(bmd.stop(), 0);
  ASSERT_TRUE(bmd.start());
  EXPECT_EQ(code_of(info(*bmd.client(created.secret()))), ErrorCode::Unauthenticated);
}

TEST_F(AccessTest, TenantsMayNotDoWhatOperatorsDo) {
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::CreateTokenRequest create;
  create.set_role(v1::ROLE_OPERATOR);
  create.set_name("mallory");
  v1::CreateTokenResponse created;
  EXPECT_EQ(code_of(alice->call("bmgpu.v1.Market/CreateToken", create, created, "k")),
            ErrorCode::PermissionDenied);
  v1::ListNodesResponse nodes;
  EXPECT_EQ(code_of(alice->call("bmgpu.v1.Market/ListNodes", v1::ListNodesRequest(), nodes)),
            ErrorCode::PermissionDenied);
  v1::ListOffersResponse offers;
  EXPECT_TRUE(alice->call("bmgpu.v1.Market/ListOffers", v1::ListOffersRequest(), offers));
}

TEST_F(AccessTest, MutationsNeedAKeyAndAnswerItOnlyOnce) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::Order first;
  v1::Order again;
  EXPECT_EQ(code_of(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), first)),
            ErrorCode::InvalidArgument);
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), first, "key-1"));
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), again, "key-1"));
  EXPECT_EQ(first.id(), again.id());
  EXPECT_EQ(code_of(alice->call("bmgpu.v1.Market/PlaceOrder", order(2), again, "key-1")),
            ErrorCode::AlreadyExists);
  // Keys are per account.
  v1::Order other;
  ASSERT_TRUE(tenant("bob")->call("bmgpu.v1.Market/PlaceOrder", order(1), other, "key-1"));
  EXPECT_NE(other.id(), first.id());
  v1::ListOrdersResponse orders;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/ListOrders", v1::ListOrdersRequest(), orders));
  EXPECT_EQ(orders.orders_size(), 1);
}

TEST_F(AccessTest, KeysOutliveARestart) {
  const v1::CreateTokenResponse created = create_token(v1::ROLE_TENANT, "alice");
  bmd.kill();
  ASSERT_TRUE(bmd.start());
  EXPECT_EQ(create_token(v1::ROLE_TENANT, "alice").secret(), created.secret());
}

TEST_F(AccessTest, SomeoneElsesOrderIsNotFound) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  const std::unique_ptr<wire::Client> bob = tenant("bob");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "k"));
  v1::GetOrderRequest get;
  v1::StopOrderRequest stop;
  v1::Order seen;
  for (const std::string& id : {placed.id(), placed.lease()}) {
    get.set_id(id);
    stop.set_id(id);
    EXPECT_TRUE(alice->call("bmgpu.v1.Market/GetOrder", get, seen));
    EXPECT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/GetOrder", get, seen));
    EXPECT_EQ(code_of(bob->call("bmgpu.v1.Market/GetOrder", get, seen)), ErrorCode::NotFound);
    EXPECT_EQ(code_of(bob->call("bmgpu.v1.Market/StopOrder", stop, seen, "s" + id)),
              ErrorCode::NotFound);
  }
}

// What a caller hears who asks by id, method by method: nothing (it works), or the error.
class Walk {
 public:
  Walk(const BmdProcess& bmd, const std::string& token)
      : bmd_(bmd), token_(token), client_(bmd.client(token)) {}

  std::map<std::string, std::string> by_order(const std::string& id) {
    v1::GetOrderRequest get;
    get.set_id(id);
    v1::ListEventsRequest events;
    events.set_id(id);
    v1::ExplainRequest explain;
    explain.set_id(id);
    v1::ExtendLeaseRequest extend;
    extend.set_id(id);
    extend.set_by_ms(900'000);
    v1::StreamLogsRequest logs;
    logs.set_id(id);
    v1::StopOrderRequest stop;
    stop.set_id(id);
    std::map<std::string, std::string> heard;
    heard["GetOrder"] = call<v1::Order>("GetOrder", get);
    heard["ListEvents"] = call<v1::ListEventsResponse>("ListEvents", events);
    heard["Explain"] = call<v1::ExplainResponse>("Explain", explain);
    heard["ExtendLease"] = call<v1::Order>("ExtendLease", extend);
    heard["WatchOrder"] = stream("WatchOrder", get);
    heard["StreamLogs"] = stream("StreamLogs", logs);
    heard["Exec"] = exec(id, v1::ARCHIVE_DIRECTION_UNSPECIFIED);
    heard["Exec (cp)"] = exec(id, v1::ARCHIVE_DIRECTION_DOWNLOAD);
    heard["StopOrder"] = call<v1::Order>("StopOrder", stop);  // last: it ends the lease
    return heard;
  }

  template <typename Response, typename Request>
  std::string call(const std::string& method, const Request& request) {
    Response response;
    return text(client_->call("bmgpu.v1.Market/" + method, request, response,
                              "walk-" + std::to_string(++calls_)));
  }

 private:
  static std::string text(const Result<void>& done) {
    return done                                       ? ""
           : done.error().code == ErrorCode::NotFound ? "not found"
                                                      : done.error().message;
  }
  template <typename Request>
  std::string stream(const std::string& method, const Request& request) {
    return text(client_->stream("bmgpu.v1.Market/" + method, request,
                                [](std::string_view) { return false; }));
  }
  // The first frame: an error's text, or nothing.
  std::string exec(const std::string& id, v1::ArchiveDirection archive) {
    std::promise<std::string> first;
    std::atomic<bool> told{false};
    const auto tell = [&](const std::string& what) {
      if (!told.exchange(true)) {
        first.set_value(what);
      }
    };
    Result<std::unique_ptr<wire::WebSocketClient>> socket = wire::WebSocketClient::connect(
        bmd_.endpoint(token_), "bmgpu.v1.Market/Exec",
        {[&](const std::string& bytes) {
           v1::ExecServerFrame frame;
           tell(frame.ParseFromString(bytes) ? frame.error() : "not a frame");
         },
         [&](const Error& error) { tell(error.message); }},
        std::chrono::seconds(5));
    if (!socket) {
      return socket.error().message;
    }
    v1::ExecClientFrame start;
    start.mutable_start()->set_id(id);
    start.mutable_start()->set_archive(archive);
    start.mutable_start()->set_archive_path("/x");
    start.mutable_start()->add_command("true");
    EXPECT_TRUE((*socket)->send(start.SerializeAsString()));
    const std::string heard = first.get_future().get();
    return heard.starts_with("there is no") ? "not found" : heard;
  }

  const BmdProcess& bmd_;
  const std::string token_;
  const std::unique_ptr<wire::Client> client_;
  int calls_ = 0;
};

TEST_F(AccessTest, EveryMethodThatTakesAnIdFindsOnlyOnesOwn) {
  FakeAgent agent(bmd, {});
  agent.on_stream = [&](const v1::StreamFrame& frame) {
    if (frame.to_node().has_start()) {
      v1::AgentFrame out;
      out.mutable_stream()->set_stream(frame.stream());
      out.mutable_stream()->mutable_to_client()->set_exit_code(0);
      agent.send(out);
    }
  };
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::string alice = create_token(v1::ROLE_TENANT, "alice").secret();
  const std::string bob = create_token(v1::ROLE_TENANT, "bob").secret();
  const std::unique_ptr<wire::Client> client = bmd.client(alice);
  v1::CreateQuoteRequest wanted;
  wanted.mutable_resources()->set_gpus(1);
  wanted.set_duration_ms(3'600'000);
  v1::Quote quote;
  ASSERT_TRUE(client->call("bmgpu.v1.Market/CreateQuote", wanted, quote, "q"));
  v1::ExplainRequest of_quote;
  of_quote.set_id(quote.id());
  v1::PlaceOrderRequest take = order(1, "");
  take.set_quote(quote.id());
  EXPECT_EQ(Walk(bmd, bob).call<v1::ExplainResponse>("Explain", of_quote), "not found");
  EXPECT_EQ(Walk(bmd, bob).call<v1::Order>("PlaceOrder", take),
            "the quote has expired or was taken; ask for a new one");
  EXPECT_EQ(Walk(bmd, alice).call<v1::ExplainResponse>("Explain", of_quote), "");
  v1::Order placed;
  ASSERT_TRUE(client->call("bmgpu.v1.Market/PlaceOrder", take, placed, "p"));
  watch_until(*client, placed.id(),
              [](const v1::Order& seen) { return seen.state() == v1::ORDER_STATE_RUNNING; });
  agent.send_log(placed.lease(), 1, 3, false);
  ASSERT_TRUE(agent.wait([&] { return agent.log_acknowledged(placed.lease()) == 4; }));
  for (const std::string& id : {placed.id(), placed.lease()}) {
    for (const auto& [method, heard] : Walk(bmd, bob).by_order(id)) {
      EXPECT_EQ(heard, "not found") << method << " " << id;
    }
  }
  for (const auto& [method, heard] : Walk(bmd, alice).by_order(placed.id())) {
    EXPECT_EQ(heard, "") << method;
  }
}

TEST_F(AccessTest, BadInputIsRefusedAndChangesNothing) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  std::vector<v1::PlaceOrderRequest> bad(8, order(1));
  bad[0].mutable_job()->set_image("-v=/:/host");
  bad[1].mutable_job()->set_image("a;rm");
  bad[2].mutable_job()->set_command(0, std::string(200'000, 'x'));
  bad[3].mutable_resources()->set_gpus(0);
  bad[4].mutable_resources()->set_gpus(1'000'000);
  bad[5].set_duration_ms(-1);
  bad[6].mutable_resources()->set_gpu("Z9000");
  bad[7].mutable_job()->add_workdir()->set_path("../escape");
  v1::Order placed;
  int number = 0;
  for (const v1::PlaceOrderRequest& request : bad) {
    EXPECT_EQ(code_of(alice->call("bmgpu.v1.Market/PlaceOrder", request, placed,
                                  "bad-" + std::to_string(++number))),
              ErrorCode::InvalidArgument)
        << number;
  }
  v1::ListOrdersRequest list;
  list.set_all(true);
  v1::ListOrdersResponse orders;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/ListOrders", list, orders));
  EXPECT_EQ(orders.orders_size(), 0);
  EXPECT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "good"));
}

TEST_F(AccessTest, ASecondBmdOnTheSameStateIsRefused) {
  int code = 0;
  bmd.run("", code);
  EXPECT_EQ(code, 1);
  EXPECT_NE(bmd.messages().find("in use by another bmd"), std::string::npos) << bmd.messages();
  v1::GetInfoResponse who;
  EXPECT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who));
}

TEST_F(AccessTest, JoinTokensWorkOnceAndNodeNamesAreUnique) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  v1::CreateTokenRequest create;
  create.set_role(v1::ROLE_NODE_JOIN);
  create.set_node("node-a");
  v1::CreateTokenResponse created;
  EXPECT_EQ(
      code_of(bmd.operator_client()->call("bmgpu.v1.Market/CreateToken", create, created, "again")),
      ErrorCode::AlreadyExists);
  create.set_node("node-b");
  create.set_ttl_ms(3'600'000);
  EXPECT_EQ(code_of(bmd.operator_client()->call("bmgpu.v1.Market/CreateToken", create, created,
                                                "too-long")),
            ErrorCode::InvalidArgument);
}

TEST_F(AccessTest, TokensSayWhetherTheyCanStillBeUsed) {
  FakeAgent agent(bmd, {});  // joins with a token
  create_token(v1::ROLE_TENANT, "alice");
  create_token(v1::ROLE_TENANT, "bob");
  v1::RevokeTokenRequest revoke;
  revoke.set_id("bob");
  v1::Token token;
  const std::unique_ptr<wire::Client> op = bmd.operator_client();
  ASSERT_TRUE(op->call("bmgpu.v1.Market/RevokeToken", revoke, token, "revoke"));
  v1::ListTokensResponse tokens;
  ASSERT_TRUE(op->call("bmgpu.v1.Market/ListTokens", v1::ListTokensRequest(), tokens));
  std::map<std::string, std::string> states;
  for (const v1::Token& listed : tokens.tokens()) {
    states[listed.role() == v1::ROLE_NODE_JOIN ? "join" : listed.name()] = listed.state();
  }
  EXPECT_EQ(states["join"], "used");
  EXPECT_EQ(states["alice"], "live");
  EXPECT_EQ(states["bob"], "revoked");
}

TEST_F(AccessTest, AQuoteNamesTheNodeWhereItWouldRun) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  v1::CreateQuoteRequest request;
  request.mutable_resources()->set_gpus(2);
  request.set_duration_ms(3'600'000);
  v1::Quote quote;
  ASSERT_TRUE(tenant("alice")->call("bmgpu.v1.Market/CreateQuote", request, quote, "q"));
  EXPECT_EQ(quote.node(), "node-a");
}

TEST(AccessTlsTest, ServesTlsFromItsOwnAuthorityAndClientsPinIt) {
  BmdProcess bmd(BMD_PROGRAM, "tls: {mode: auto}");
  ASSERT_TRUE(bmd.start()) << bmd.messages();
  v1::GetInfoResponse who;
  const auto info = [&](wire::Client& client) {
    return client.call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who);
  };
  EXPECT_TRUE(info(*bmd.operator_client()));
  wire::Endpoint other = bmd.endpoint(bmd.operator_token());
  ASSERT_EQ(other.url.substr(0, 8), "https://");
  other.ca_sha256 = std::string(64, 'a');
  Result<std::unique_ptr<wire::Client>> stranger = wire::Client::create(other);
  ASSERT_TRUE(stranger.ok());
  EXPECT_FALSE(info(**stranger));
}

}  // namespace
}  // namespace bmgpu::integration
