#include <gmock/gmock.h>

#include "bmgpu/v1/market.pb.h"
#include "command_line.h"

namespace bmgpu::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using OnMessage = FakeMarket::OnMessage;

v1::Order order_in(v1::OrderState state) {
  v1::Order order;
  order.set_id("order-1");
  order.set_lease("lease-1");
  order.set_state(state);
  order.set_gpu("NVIDIA A100 80GB PCIe");
  order.set_gpus(2);
  order.set_node("n1");
  order.set_currency("USD");
  order.set_charge_micros(1'500'000);
  order.set_quote_micros(2'000'000);
  order.set_billed_from_unix_ms(1);
  return order;
}

v1::Order ended(v1::EndReason reason, std::optional<int> exit_code) {
  v1::Order order = order_in(v1::ORDER_STATE_ENDED);
  order.set_end_reason(reason);
  if (exit_code) {
    order.set_exit_code(*exit_code);
  }
  return order;
}

v1::LogChunk chunk(std::uint64_t first, const std::vector<std::string>& lines, bool complete) {
  v1::LogChunk out;
  for (const std::string& text : lines) {
    v1::LogLine& line = *out.add_lines();
    line.set_sequence(first++);
    line.set_time_unix_ms(1'799'999'999'000 + static_cast<std::int64_t>(first));
    line.set_stream(v1::LOG_STREAM_STDOUT);
    line.set_text(text);
  }
  out.set_complete(complete);
  return out;
}

TEST(ListTest, OptionsBecomeTermsAndNothingIsHidden) {
  CommandLine bmcli;
  bmcli.market.on<v1::ListOffersRequest, v1::ListOffersResponse>(
      "ListOffers", [](const v1::ListOffersRequest& request, v1::ListOffersResponse& response) {
        EXPECT_EQ(request.query(), "site=a gpu=\"A100 80GB\" mem>=40G gpus>=2 price<=1.5");
        v1::FilterTerm& term = *response.add_terms();
        term.set_term("mem>=40GiB");
        term.set_removed(3);
        v1::Offer& offer = *response.add_offers();
        offer.set_id("offer-1-1");
        offer.set_gpu("NVIDIA A100 80GB PCIe");
        offer.set_price_micros_per_gpu_hour(1'234'500);
        offer.set_gpus_free(4);
        offer.set_gpus_total(8);
        offer.set_gpu_memory_mib(81920);
        response.set_currency("USD");
        response.set_as_of_unix_ms(1'800'000'000'000);
        return Result<void>();
      });
  const std::vector<std::string> line = {
      "list", "site=a", "--gpu=A100 80GB", "--min-mem=40G", "-g2", "--max-price", "1.5"};
  const Ran ran = bmcli.run(line);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("A100 80GB PCIe"));
  EXPECT_THAT(ran.out, HasSubstr("1.2345 USD"));
  EXPECT_THAT(ran.out, HasSubstr("4/8"));
  EXPECT_THAT(ran.err, HasSubstr("mem>=40GiB (removed 3)"));
  EXPECT_THAT(ran.err, HasSubstr("As of 2027-01-15"));
  std::vector<std::string> json_line = line;
  json_line.push_back("--json");
  const Ran json = bmcli.run(json_line);
  ASSERT_TRUE(one_document(json.out));
  EXPECT_THAT(json.out, HasSubstr("\"price_micros_per_gpu_hour\":1234500"));
  EXPECT_EQ(json.err, "");
}

TEST(PsTest, ShowsStatesAndMoney) {
  CommandLine bmcli;
  bmcli.market.on<v1::ListOrdersRequest, v1::ListOrdersResponse>(
      "ListOrders", [](const v1::ListOrdersRequest& request, v1::ListOrdersResponse& response) {
        EXPECT_TRUE(request.all());
        EXPECT_EQ(request.limit(), 5u);
        *response.add_orders() = order_in(v1::ORDER_STATE_RUNNING);
        *response.add_orders() = ended(v1::END_REASON_JOB_EXITED, 3);
        return Result<void>();
      });
  const Ran ran = bmcli.run({"ps", "-a", "--limit", "5"});
  EXPECT_THAT(ran.out, HasSubstr("running"));
  EXPECT_THAT(ran.out, HasSubstr("ended: exit 3"));
  EXPECT_THAT(ran.out, HasSubstr("1.50 USD"));
  const Ran json = bmcli.run({"ps", "-a", "--limit=5", "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"state\":\"running\""));
  EXPECT_THAT(json.out, HasSubstr("\"end_reason\":\"job-exited\""));
  EXPECT_THAT(json.out, HasSubstr("\"exit_code\":null"));
  EXPECT_THAT(json.out, HasSubstr("\"charge_micros\":1500000"));
  EXPECT_EQ(bmcli.run({"ps", "--limit", "0"}).code, 2);
  EXPECT_EQ(bmcli.run({"ps", "-w", "--json"}).code, 2);
}

// Nothing to show: standard output stays empty, and standard error says how to get further.
TEST(EmptyTest, SaysHowToStart) {
  CommandLine bmcli;
  bmcli.market.on<v1::ListOffersRequest, v1::ListOffersResponse>(
      "ListOffers", [](const v1::ListOffersRequest& request, v1::ListOffersResponse& response) {
        if (!request.query().empty()) {
          response.add_terms()->set_term(request.query());
        }
        return Result<void>();
      });
  bmcli.market.on<v1::ListOrdersRequest, v1::ListOrdersResponse>(
      "ListOrders",
      [](const v1::ListOrdersRequest&, v1::ListOrdersResponse&) { return Result<void>(); });
  bmcli.market.on<v1::ListEventsRequest, v1::ListEventsResponse>(
      "ListEvents",
      [](const v1::ListEventsRequest&, v1::ListEventsResponse&) { return Result<void>(); });
  bmcli.market.on<v1::ListNodesRequest, v1::ListNodesResponse>(
      "ListNodes",
      [](const v1::ListNodesRequest&, v1::ListNodesResponse&) { return Result<void>(); });
  bmcli.market.on<v1::ListTokensRequest, v1::ListTokensResponse>(
      "ListTokens",
      [](const v1::ListTokensRequest&, v1::ListTokensResponse&) { return Result<void>(); });
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"list"}, "bmcli nodes list"},
      {{"list", "gpu=X"}, "leave a term out"},
      {{"ps"}, "bmcli ps --all"},
      {{"ps", "-a"}, "bmcli run -g 1"},
      {{"events"}, "bmcli run -g 1"},
      {{"events", "order-1"}, "bmcli explain order-1"},
      {{"events", "--after", "7"}, "--after"},
      {{"nodes", "list"}, "bmcli token create --role node-join"},
      {{"token", "list"}, "bmcli token create --role tenant"},
  };
  for (const auto& [line, hint] : cases) {
    const Ran ran = bmcli.run(line);
    EXPECT_EQ(ran.code, 0) << hint;
    EXPECT_EQ(ran.out, "") << hint;
    EXPECT_THAT(ran.err, HasSubstr(hint));
    std::vector<std::string> json_line = line;
    json_line.push_back("--json");
    const Ran json = bmcli.run(json_line);
    EXPECT_TRUE(one_document(json.out)) << hint;
    EXPECT_EQ(json.err, "") << hint;
  }
  EXPECT_EQ(bmcli.run({"events", "--jsonl"}).out, "");
}

TEST(StopTest, SaysThatAnEndedOneCostsNothingMore) {
  CommandLine bmcli;
  bmcli.market.on<v1::StopOrderRequest, v1::Order>(
      "StopOrder", [](const v1::StopOrderRequest& request, v1::Order& order) -> Result<void> {
        if (request.id() == "order-9") {
          return Error{ErrorCode::NotFound, "no order order-9"};
        }
        order = ended(v1::END_REASON_STOPPED, {});
        return {};
      });
  const Ran ran = bmcli.run({"stop", "order-1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("order-1 has ended: it was stopped; charged 1.50 USD"));
  EXPECT_THAT(ran.out, HasSubstr("costs nothing more"));
  const Ran mixed = bmcli.run({"stop", "order-1", "order-9", "--json"});
  EXPECT_EQ(mixed.code, 3);
  ASSERT_TRUE(one_document(mixed.out));
  EXPECT_THAT(mixed.out, HasSubstr("\"orders\":[{\"id\":\"order-1\""));
  EXPECT_THAT(mixed.out, HasSubstr("\"code\":\"not_found\""));
}

TEST(MutationTest, ALostConnectionRepeatsTheSameKey) {
  CommandLine bmcli;
  int tries = 0;
  bmcli.market.on<v1::ExtendLeaseRequest, v1::Order>(
      "ExtendLease", [&](const v1::ExtendLeaseRequest& request, v1::Order& order) -> Result<void> {
        EXPECT_EQ(request.by_ms(), 3'600'000);
        EXPECT_EQ(request.max_price_micros_per_gpu_hour(), 1'500'000);
        if (++tries < 3) {
          return Error{ErrorCode::Unavailable, "gone"};
        }
        order = order_in(v1::ORDER_STATE_RUNNING);
        return {};
      });
  const std::vector<std::string> line = {"extend", "order-1", "--by", "1h", "--max-price=1.50"};
  ASSERT_EQ(bmcli.run(line).code, 0);
  ASSERT_EQ(bmcli.run(line).code, 0);
  const std::vector<FakeMarket::Call> calls = bmcli.market.calls("ExtendLease");
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].key.size(), 32u);
  EXPECT_EQ(calls[0].key, calls[1].key);
  EXPECT_EQ(calls[0].key, calls[2].key);
  EXPECT_NE(calls[0].key, calls[3].key);
  EXPECT_EQ(bmcli.run({"extend", "order-1"}).code, 2);
  EXPECT_EQ(bmcli.run({"extend", "order-1", "--by", "-1h"}).code, 2);
}

TEST(NodesTest, NamesTheFirstClosedGate) {
  CommandLine bmcli;
  bmcli.market.on<v1::ListNodesRequest, v1::ListNodesResponse>(
      "ListNodes", [](const v1::ListNodesRequest&, v1::ListNodesResponse& response) {
        v1::Node& node = *response.add_nodes();
        node.set_id("node-1");
        node.set_name("gpu01");
        node.set_state("not-offered");
        node.add_gates()->set_open(true);
        v1::Gate& gate = *node.add_gates();
        gate.set_name("engine");
        gate.set_detail("podman is missing");
        v1::Gpu& gpu = *node.add_gpus();
        gpu.set_model("NVIDIA A40");
        gpu.set_temperature_c(41);
        return Result<void>();
      });
  bmcli.market.on<v1::ExplainRequest, v1::ExplainResponse>(
      "Explain", [](const v1::ExplainRequest& request, v1::ExplainResponse& response) {
        EXPECT_EQ(request.id(), "node-1");
        response.set_subject("node-1");
        response.add_lines("line\x1b[2J");
        return Result<void>();
      });
  EXPECT_THAT(bmcli.run({"nodes", "list"}).out, HasSubstr("engine: podman is missing"));
  const Ran ran = bmcli.run({"nodes", "explain", "gpu01"});
  EXPECT_THAT(ran.out, HasSubstr("line\\x1b[2J"));
  EXPECT_THAT(ran.out, HasSubstr("41 °C"));
  EXPECT_EQ(bmcli.run({"nodes", "explain", "gpu02"}).code, 3);
}

TEST(TokenTest, OnlyTheSecretGoesToStandardOutput) {
  CommandLine bmcli;
  bmcli.market.on<v1::CreateTokenRequest, v1::CreateTokenResponse>(
      "CreateToken", [](const v1::CreateTokenRequest& request, v1::CreateTokenResponse& response) {
        EXPECT_EQ(request.role(), v1::ROLE_NODE_JOIN);
        EXPECT_EQ(request.ttl_ms(), 300'000);
        EXPECT_EQ(request.node(), "gpu01");
        response.mutable_token()->set_id("token-3");
        response.set_secret("bmj1.x");
        return Result<void>();
      });
  const std::vector<std::string> line = {"token", "create", "--role", "node-join", "--name",
                                         "j",     "--node", "gpu01",  "--ttl",     "5m"};
  EXPECT_EQ(bmcli.run(line).out, "bmj1.x\n");
  EXPECT_EQ(bmcli.run({"token", "create", "--role", "node-join", "--name", "j"}).code, 2);
  EXPECT_EQ(bmcli.run({"token", "create", "--role", "tenant", "--name", "j", "--node=x"}).code, 2);
  EXPECT_EQ(bmcli.run({"token", "create", "--name", "j"}).code, 2);
}

TEST(TokenTest, ListSaysWhatCanStillBeUsed) {
  CommandLine bmcli;
  bmcli.market.on<v1::ListTokensRequest, v1::ListTokensResponse>(
      "ListTokens", [](const v1::ListTokensRequest&, v1::ListTokensResponse& response) {
        response.add_tokens()->set_state("used");
        response.add_tokens()->set_state("live");
        return Result<void>();
      });
  const Ran ran = bmcli.run({"token", "list"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("used"));
  EXPECT_THAT(ran.out, HasSubstr("live"));
}

TEST(EventsTest, AnEmptyIdIsNotAllEvents) {
  CommandLine bmcli;
  bool called = false;
  bmcli.market.on<v1::ListEventsRequest, v1::ListEventsResponse>(
      "ListEvents", [&](const v1::ListEventsRequest& request, v1::ListEventsResponse&) {
        called = true;
        EXPECT_EQ(request.id(), "");
        EXPECT_FALSE(request.has_after_sequence());
        return Result<void>();
      });
  const Ran empty = bmcli.run({"events", ""});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("leave it out"));
  EXPECT_FALSE(called);
  EXPECT_EQ(bmcli.run({"events"}).code, 0);
  EXPECT_TRUE(called);
}

TEST(EventsTest, AfterZeroAsksForTheFirst) {
  CommandLine bmcli;
  bmcli.market.on<v1::ListEventsRequest, v1::ListEventsResponse>(
      "ListEvents", [](const v1::ListEventsRequest& request, v1::ListEventsResponse&) {
        EXPECT_TRUE(request.has_after_sequence());
        return Result<void>();
      });
  EXPECT_EQ(bmcli.run({"events", "--after", "0"}).code, 0);
}

TEST(LogsTest, PrintsTextJsonAndLines) {
  CommandLine bmcli;
  bmcli.market.on_stream<v1::StreamLogsRequest>(
      "StreamLogs", [](const v1::StreamLogsRequest& request, const OnMessage& on_message) {
        EXPECT_FALSE(request.follow());
        on_message(chunk(1, {"one", "two\xff"}, false).SerializeAsString());
        return Result<void>();
      });
  EXPECT_EQ(bmcli.run({"logs", "order-1"}).out, "one\ntwo\xff\n");
  const Ran json = bmcli.run({"logs", "order-1", "--json"});
  ASSERT_TRUE(one_document(json.out));
  EXPECT_THAT(json.out, HasSubstr("\"sequence\":2"));
  EXPECT_THAT(json.out, HasSubstr("\"text\":\"two\xef\xbf\xbd\""));
  const Ran lines = bmcli.run({"logs", "order-1", "--jsonl"});
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 2);
  EXPECT_EQ(bmcli.run({"logs", "-f", "--json", "order-1"}).code, 2);
  EXPECT_EQ(bmcli.run({"logs", "--tail", "10001", "order-1"}).code, 2);
}

TEST(LogsTest, SinceAndTimesWork) {
  CommandLine bmcli;
  bmcli.market.on_stream<v1::StreamLogsRequest>(
      "StreamLogs", [](const v1::StreamLogsRequest&, const OnMessage& on_message) {
        v1::LogChunk out = chunk(1, {"old", "new"}, true);
        out.mutable_lines(0)->set_time_unix_ms(1'799'000'000'000);
        on_message(out.SerializeAsString());
        return Result<void>();
      });
  EXPECT_EQ(bmcli.run({"logs", "order-1", "--since", "1m"}).out, "new\n");
  EXPECT_THAT(bmcli.run({"logs", "order-1", "-t"}).out, HasSubstr("2027-"));
}

// The connection breaks within and between lines; each line comes exactly once.
TEST(LogsTest, FollowLosesAndDoublesNothing) {
  CommandLine bmcli;
  int tries = 0;
  bmcli.market.on_stream<v1::StreamLogsRequest>(
      "StreamLogs",
      [&](const v1::StreamLogsRequest& request, const OnMessage& on_message) -> Result<void> {
        EXPECT_TRUE(request.follow());
        const std::uint64_t from = request.from_sequence();
        // A server may repeat lines that it is not sure to have sent.
        const std::uint64_t first = from > 1 ? from - 1 : 1;
        for (std::uint64_t n = first; n < first + 3 && n <= 20; ++n) {
          on_message(chunk(n, {std::to_string(n)}, n == 20).SerializeAsString());
        }
        ++tries;
        return tries % 2 == 0 ? Result<void>() : Error{ErrorCode::Unavailable, "cut"};
      });
  const Ran ran = bmcli.run({"logs", "-f", "order-1"});
  std::string expected;
  for (int n = 1; n <= 20; ++n) {
    expected += std::to_string(n) + "\n";
  }
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, expected);
  EXPECT_THAT(ran.err, HasSubstr("connection lost"));
  EXPECT_THAT(ran.err, HasSubstr("connected again"));
}

TEST(LogsTest, FollowEndsWhenTheMarketRefuses) {
  CommandLine bmcli;
  bmcli.market.fail_everything({ErrorCode::NotFound, "no order"});
  EXPECT_EQ(bmcli.run({"logs", "-f", "order-1"}).code, 3);
}

void watch_answers(CommandLine& bmcli, const std::vector<v1::Order>& orders) {
  bmcli.market.on_stream<v1::GetOrderRequest>(
      "WatchOrder", [orders](const v1::GetOrderRequest&, const OnMessage& on_message) {
        for (const v1::Order& order : orders) {
          if (!on_message(order.SerializeAsString())) {
            return Result<void>();
          }
        }
        return Result<void>();
      });
}

TEST(WaitTest, HasItsThreeExitCodes) {
  CommandLine bmcli;
  watch_answers(bmcli, {order_in(v1::ORDER_STATE_PREPARING), order_in(v1::ORDER_STATE_RUNNING),
                        ended(v1::END_REASON_JOB_EXITED, 0)});
  EXPECT_EQ(bmcli.run({"wait", "order-1"}).code, 0);
  const Ran running = bmcli.run({"wait", "order-1", "--for", "running", "--json"});
  EXPECT_EQ(running.code, 0);
  EXPECT_THAT(running.out, HasSubstr("\"state\":\"running\""));

  watch_answers(bmcli, {ended(v1::END_REASON_JOB_EXITED, 3)});
  const Ran failed = bmcli.run({"wait", "order-1", "--json"});
  EXPECT_EQ(failed.code, 6);
  EXPECT_THAT(failed.out, HasSubstr("\"exit_code\":3"));
  EXPECT_THAT(failed.out, HasSubstr("\"code\":\"job_failed\""));

  v1::Order never_ran = ended(v1::END_REASON_START_FAILED, {});
  never_ran.set_billed_from_unix_ms(0);
  watch_answers(bmcli, {never_ran});
  EXPECT_EQ(bmcli.run({"wait", "order-1", "--for", "running"}).code, 6);

  watch_answers(bmcli, {order_in(v1::ORDER_STATE_PREPARING)});  // and the stream ends again
  const Ran late = bmcli.run({"wait", "order-1", "--timeout", "50ms", "--json"});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.out, HasSubstr("\"code\":\"wait_timeout\""));
  EXPECT_EQ(bmcli.run({"wait", "order-1", "--for", "ever"}).code, 2);
}

}  // namespace
}  // namespace bmgpu::cli
