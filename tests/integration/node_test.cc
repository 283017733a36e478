// Nodes as bmd sees them: joining, gates, leases, logs, losing and finding a node.
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "integration/market_fixture.h"

namespace bmgpu::integration {
namespace {

class NodeTest : public MarketTest {
 protected:
  NodeTest() : MarketTest("liveness: {lost_ms: 1500, fence_ms: 500}") {}

  v1::Node node_of(const std::string& name) {
    v1::ListNodesResponse nodes;
    EXPECT_TRUE(
        bmd.operator_client()->call("bmgpu.v1.Market/ListNodes", v1::ListNodesRequest(), nodes));
    for (const v1::Node& node : nodes.nodes()) {
      if (node.name() == name) {
        return node;
      }
    }
    return {};
  }
  // Asks until the node is in that state; the node then.
  v1::Node wait_state(const std::string& name, const std::string& state) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    v1::Node node = node_of(name);
    while (node.state() != state && std::chrono::steady_clock::now() < deadline) {
      node = node_of(name);
    }
    EXPECT_EQ(node.state(), state);
    return node;
  }
  static bool gate_open(const v1::Node& node, const std::string& name) {
    for (const v1::Gate& gate : node.gates()) {
      if (gate.name() == name) {
        return gate.open();
      }
    }
    ADD_FAILURE() << "no gate " << name;
    return false;
  }
};

TEST_F(NodeTest, ALeaseRunsAndIsStopped) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::PlaceOrderRequest request = order(2);
  v1::EnvVar& var = *request.mutable_job()->add_env();
  var.set_name("TOKEN");
  var.set_value("secret");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", request, placed, "k"));
  EXPECT_EQ(placed.state(), v1::ORDER_STATE_PREPARING);
  EXPECT_EQ(placed.gpu_uuids_size(), 2);
  ASSERT_TRUE(agent.wait([&] { return agent.desired().attempts_size() == 1; }));
  EXPECT_EQ(agent.desired().attempts(0).job().env(0).value(), "secret");
  const v1::Order running = watch_until(*alice, placed.id(), [](const v1::Order& order) {
    return order.state() == v1::ORDER_STATE_RUNNING;
  });
  EXPECT_GT(running.billed_from_unix_ms(), 0);
  v1::StopOrderRequest stop;
  stop.set_id(placed.lease());
  v1::Order stopped;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/StopOrder", stop, stopped, "s"));
  const v1::Order ended = watch_until(*alice, placed.id(), [](const v1::Order& order) {
    return order.state() == v1::ORDER_STATE_ENDED;
  });
  EXPECT_EQ(ended.end_reason(), v1::END_REASON_STOPPED);
  EXPECT_EQ(ended.image(), "pytorch:2.0");
  EXPECT_LE(ended.charge_micros(), placed.quote_micros());
  wait_free_gpus(8);  // clean again
  // Stopping what has ended says so and is no error.
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/StopOrder", stop, stopped, "s2"));
  EXPECT_EQ(stopped.state(), v1::ORDER_STATE_ENDED);
  ASSERT_EQ(bmd.stop(), 0);
  ASSERT_TRUE(bmd.start());
  v1::ListOrdersRequest list;
  list.set_all(true);
  v1::ListOrdersResponse orders;
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/ListOrders", list, orders));
  ASSERT_EQ(orders.orders_size(), 1);
  EXPECT_EQ(orders.orders(0).state(), v1::ORDER_STATE_ENDED);
  EXPECT_EQ(orders.orders(0).charge_micros(), ended.charge_micros());
}

TEST_F(NodeTest, DesiredSetsAreNumberedUpwardsAcrossRestarts) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  ASSERT_TRUE(agent.wait([&] { return agent.desired().sequence() > 0; }));
  const std::uint64_t before = agent.desired().sequence();
  bmd.kill();
  ASSERT_TRUE(bmd.start());
  ASSERT_TRUE(agent.connect());
  EXPECT_TRUE(agent.wait([&] { return agent.desired().sequence() > before; }));
}

TEST_F(NodeTest, LogsAreAcknowledgedKeptAndFollowed) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "k"));
  ASSERT_TRUE(agent.wait([&] { return agent.desired().attempts_size() == 1; }));
  agent.send_log(placed.lease(), 1, 100, false);
  ASSERT_TRUE(agent.wait([&] { return agent.log_acknowledged(placed.lease()) == 101; }));
  bmd.kill();
  ASSERT_TRUE(bmd.start());
  ASSERT_TRUE(agent.connect());
  agent.send_log(placed.lease(), 50, 150, false);  // some of them again
  ASSERT_TRUE(agent.wait([&] { return agent.log_acknowledged(placed.lease()) == 151; }));
  v1::StreamLogsRequest request;
  request.set_id(placed.id());
  request.set_follow(true);
  std::uint64_t next = 1;
  const std::unique_ptr<wire::Client> reader = bmd.operator_client();
  const Result<void> streamed =
      reader->stream("bmgpu.v1.Market/StreamLogs", request, [&](std::string_view bytes) {
        v1::LogChunk chunk;
        EXPECT_TRUE(chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
        for (const v1::LogLine& line : chunk.lines()) {
          EXPECT_EQ(line.sequence(), next);
          EXPECT_EQ(line.text(), "line " + std::to_string(next));
          ++next;
        }
        if (next == 151) {
          agent.send_log(placed.lease(), 151, 151, true);
        }
        return true;
      });
  EXPECT_TRUE(streamed.ok()) << streamed.error().message;
  EXPECT_EQ(next, 152U);
}

TEST_F(NodeTest, ANodeWithAWrongClockOrWithoutRuntimeIsNotOffered) {
  FakeAgentOptions late;
  late.name = "late";
  late.clock_offset_ms = 3'600'000;
  FakeAgent late_agent(bmd, late);
  FakeAgentOptions broken;
  broken.name = "broken";
  broken.runtime_ok = false;
  FakeAgent broken_agent(bmd, broken);
  FakeAgent good_agent(bmd, {});
  ASSERT_TRUE(late_agent.connect());
  ASSERT_TRUE(broken_agent.connect());
  ASSERT_TRUE(good_agent.connect());
  wait_state("node-a", "offered");
  EXPECT_FALSE(gate_open(wait_state("late", "not-offered"), "clock"));
  const v1::Node without = wait_state("broken", "not-offered");
  EXPECT_FALSE(gate_open(without, "runtime"));
  EXPECT_TRUE(gate_open(without, "clock"));
  v1::ExplainRequest request;
  request.set_id("broken");
  v1::ExplainResponse why;
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/Explain", request, why));
  ASSERT_GT(why.lines_size(), 0);
  EXPECT_NE(why.lines(0).find("podman does not answer"), std::string::npos) << why.lines(0);
}

TEST_F(NodeTest, ASilentNodeIsLostItsLeaseEndsAndItComesBack) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "k"));
  watch_until(*alice, placed.id(),
              [](const v1::Order& order) { return order.state() == v1::ORDER_STATE_RUNNING; });
  agent.disconnect();
  const v1::Order ended = watch_until(*alice, placed.id(), [](const v1::Order& order) {
    return order.state() == v1::ORDER_STATE_ENDED;
  });
  EXPECT_EQ(ended.end_reason(), v1::END_REASON_NODE_LOST);
  wait_state("node-a", "lost");
  ASSERT_TRUE(agent.connect());
  wait_state("node-a", "offered");
}

TEST_F(NodeTest, OnlyANodeThatHasLeftIsRemovedAndItsNameIsFreeAgain) {
  const std::unique_ptr<wire::Client> op = bmd.operator_client();
  v1::NodeRequest request;
  request.set_node("node-a");
  v1::Node node;
  int tries = 0;
  const auto remove = [&] {
    return op->call("bmgpu.v1.Market/RemoveNode", request, node, "r" + std::to_string(++tries));
  };
  const auto why = [&] {
    const Result<void> removed = remove();
    return removed ? std::string("removed") : removed.error().message;
  };
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::Order placed;
  std::string first_id;
  std::string first_secret;
  {
    FakeAgent agent(bmd, {});
    ASSERT_TRUE(agent.connect());
    wait_free_gpus(8);
    first_id = agent.node();
    first_secret = agent.secret();
    EXPECT_NE(why().find("its agent is connected: drain it"), std::string::npos);
    ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "k"));
    EXPECT_NE(why().find(placed.lease() + " lives on it"), std::string::npos);
  }
  wait_state("node-a", "lost");
  EXPECT_FALSE(alice->call("bmgpu.v1.Market/RemoveNode", request, node, "alice"));
  ASSERT_TRUE(remove());
  EXPECT_EQ(node.state(), "removed");
  EXPECT_EQ(node_of("node-a").id(), "");
  EXPECT_NE(why().find("there is no node node-a"), std::string::npos);
  v1::GetInfoResponse who;
  EXPECT_FALSE(bmd.client(first_secret)->call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who));
  bmd.kill();
  ASSERT_TRUE(bmd.start());
  EXPECT_EQ(node_of("node-a").id(), "");
  // What it did is still told, under its name.
  const std::unique_ptr<wire::Client> again = bmd.operator_client();
  v1::GetOrderRequest get;
  get.set_id(placed.id());
  v1::Order seen;
  ASSERT_TRUE(again->call("bmgpu.v1.Market/GetOrder", get, seen));
  EXPECT_EQ(seen.node(), "node-a");
  v1::ListEventsRequest list;
  list.set_id(first_id);
  v1::ListEventsResponse events;
  ASSERT_TRUE(again->call("bmgpu.v1.Market/ListEvents", list, events));
  ASSERT_GT(events.events_size(), 2);
  EXPECT_EQ(events.events().rbegin()->kind(), "node-removed");
  FakeAgentOptions second;
  second.joins = 2;
  FakeAgent agent(bmd, second);
  EXPECT_NE(agent.node(), first_id);
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
}

TEST_F(NodeTest, ANodeThatHasLeftJoinsAgainAndItsGpusAreSanitisedFirst) {
  std::string id;
  std::string secret;
  std::vector<std::string> gpus;
  {
    FakeAgent agent(bmd, {});
    ASSERT_TRUE(agent.connect());
    wait_free_gpus(8);
    id = agent.node();
    secret = agent.secret();
    const v1::Node before = node_of("node-a");
    for (const v1::Gpu& gpu : before.gpus()) {
      gpus.push_back(gpu.id());
    }
  }
  wait_state("node-a", "lost");
  FakeAgentOptions dirty;
  dirty.joins = 2;
  dirty.clean = false;
  FakeAgent agent(bmd, dirty);
  EXPECT_EQ(agent.node(), id);
  v1::GetInfoResponse who;
  EXPECT_FALSE(bmd.client(secret)->call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who));
  EXPECT_TRUE(bmd.client(agent.secret())->call("bmgpu.v1.Market/GetInfo", v1::GetInfoRequest(), who));
  ASSERT_TRUE(agent.connect());
  const v1::Node back = wait_state("node-a", "offered");
  ASSERT_EQ(back.gpus_size(), 8);
  for (int i = 0; i < back.gpus_size(); ++i) {
    EXPECT_EQ(back.gpus(i).id(), gpus[static_cast<std::size_t>(i)]);
    EXPECT_EQ(back.gpus(i).state(), "sanitizing");
  }
  v1::AgentFrame clean;
  for (const v1::Gpu& gpu : back.gpus()) {
    v1::GpuReading& reading = *clean.mutable_gpus()->add_gpus();
    reading.set_uuid(gpu.uuid());
    reading.set_clean(true);
    reading.mutable_condition()->set_ok(true);
  }
  ASSERT_TRUE(agent.send(clean));
  wait_free_gpus(8);
}

TEST_F(NodeTest, HeartbeatsWhoseAnswersAreNotNamedDoNotCount) {
  FakeAgentOptions deaf;
  deaf.acknowledges = false;
  FakeAgent agent(bmd, deaf);
  ASSERT_TRUE(agent.connect());
  wait_state("node-a", "lost");
  EXPECT_TRUE(agent.session_open());
}

TEST_F(NodeTest, AFailedGpuLeavesTheHealthOfTheOthers) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  v1::AgentFrame frame;
  v1::GpuReading& reading = *frame.mutable_gpus()->add_gpus();
  reading.set_uuid("GPU-node-a-0");
  reading.mutable_condition()->set_ok(false);
  reading.mutable_condition()->set_fault("hung");
  reading.mutable_condition()->set_health(0);
  ASSERT_TRUE(agent.send(frame));
  wait_free_gpus(7);
  v1::ListOffersRequest request;
  request.set_query("health>=50");
  v1::ListOffersResponse found;
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/ListOffers", request, found));
  ASSERT_EQ(found.offers_size(), 1);
  EXPECT_EQ(found.offers(0).health(), 100u);
  EXPECT_EQ(found.offers(0).gpus_total(), 7u);
}

TEST_F(NodeTest, ARefusedTenantLearnsNoNameFromAnId) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  v1::ExplainRequest request;
  request.set_id(agent.node());
  v1::ExplainResponse why;
  const Result<void> refused = tenant("alice")->call("bmgpu.v1.Market/Explain", request, why);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::NotFound);
  EXPECT_EQ(refused.error().message.find("node-a"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/Explain", request, why));
  EXPECT_EQ(why.subject(), "node-a");
}

TEST_F(NodeTest, DrainedNodesTakeNoNewLease) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  v1::NodeRequest request;
  request.set_node("node-a");
  v1::Node node;
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/DrainNode", request, node, "d"));
  EXPECT_EQ(node.state(), "drained");
  v1::PlaceOrderRequest now = order(1);
  now.set_refuse_if_unavailable(true);
  v1::Order placed;
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  EXPECT_FALSE(alice->call("bmgpu.v1.Market/PlaceOrder", now, placed, "k"));
  ASSERT_TRUE(bmd.operator_client()->call("bmgpu.v1.Market/ResumeNode", request, node, "r"));
  wait_free_gpus(8);
  EXPECT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", now, placed, "k"));
}

TEST_F(NodeTest, OfHundredClientsThatWantTheLastGpuExactlyOneGetsIt) {
  FakeAgentOptions one;
  one.gpus = 1;
  FakeAgent agent(bmd, one);
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(1);
  const std::string token = create_token(v1::ROLE_TENANT, "crowd").secret();
  std::atomic<int> leased{0};
  std::atomic<int> waiting{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back([&, i] {
      v1::PlaceOrderRequest request = order(1);
      request.set_refuse_if_unavailable(i % 2 == 0);
      v1::Order placed;
      const Result<void> done = bmd.client(token)->call("bmgpu.v1.Market/PlaceOrder", request,
                                                        placed, "race-" + std::to_string(i));
      if (!done) {
        EXPECT_EQ(done.error().code, ErrorCode::Refused) << done.error().message;
        EXPECT_FALSE(done.error().message.empty());
        ++refused;
      } else if (placed.lease().empty()) {
        EXPECT_FALSE(placed.waiting_reason().empty());
        ++waiting;
      } else {
        ++leased;
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(leased, 1);
  EXPECT_EQ(leased + waiting + refused, 100);
  EXPECT_GT(waiting, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(NodeTest, WithAFullDiskReadsAndHeartbeatsGoOn) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "k1"));
  rlimit before{};
  ASSERT_EQ(prlimit(bmd.pid(), RLIMIT_FSIZE, nullptr, &before), 0);
  const rlimit full{1, before.rlim_max};
  ASSERT_EQ(prlimit(bmd.pid(), RLIMIT_FSIZE, &full, nullptr), 0);
  v1::Order second;
  const Result<void> failed = alice->call("bmgpu.v1.Market/PlaceOrder", order(1), second, "k2");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::Unavailable);
  EXPECT_NE(failed.error().message.find("disk full"), std::string::npos) << failed.error().message;
  v1::GetOrderRequest get;
  get.set_id(placed.id());
  v1::Order seen;
  EXPECT_TRUE(alice->call("bmgpu.v1.Market/GetOrder", get, seen));
  EXPECT_EQ(seen.lease(), placed.lease());
  const std::uint64_t answered = agent.heartbeats_answered();
  EXPECT_TRUE(agent.wait([&] { return agent.heartbeats_answered() >= answered + 3; }));
  ASSERT_EQ(prlimit(bmd.pid(), RLIMIT_FSIZE, &before, nullptr), 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  Result<void> again = failed;
  while (!again && std::chrono::steady_clock::now() < deadline) {
    again = alice->call("bmgpu.v1.Market/PlaceOrder", order(1), second, "k2");
  }
  EXPECT_TRUE(again.ok()) << again.error().message;
  EXPECT_NE(second.id(), placed.id());
}

TEST_F(NodeTest, ExecBytesGoBothWays) {
  FakeAgent agent(bmd, {});
  agent.on_stream = [&](const v1::StreamFrame& frame) {  // echoes its input, ends with 7
    v1::AgentFrame out;
    v1::StreamFrame& stream = *out.mutable_stream();
    stream.set_stream(frame.stream());
    if (frame.to_node().kind_case() == v1::ExecClientFrame::kStdin) {
      stream.mutable_to_client()->set_stdout(frame.to_node().stdin());
      stream.set_window(static_cast<std::uint32_t>(frame.to_node().stdin().size()));
      agent.send(out);
    } else if (frame.to_node().kind_case() == v1::ExecClientFrame::kStdinClosed) {
      stream.mutable_to_client()->set_exit_code(7);
      agent.send(out);
    }
  };
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::string token = create_token(v1::ROLE_TENANT, "alice").secret();
  const std::unique_ptr<wire::Client> alice = bmd.client(token);
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(1), placed, "k"));
  watch_until(*alice, placed.id(),
              [](const v1::Order& order) { return order.state() == v1::ORDER_STATE_RUNNING; });
  std::mutex mutex;
  std::condition_variable changed;
  std::string received;
  int exit_code = -1;
  Result<std::unique_ptr<wire::WebSocketClient>> socket =
      wire::WebSocketClient::connect(bmd.endpoint(token), "bmgpu.v1.Market/Exec",
                                     {[&](const std::string& bytes) {
                                        v1::ExecServerFrame frame;
                                        EXPECT_TRUE(frame.ParseFromString(bytes));
                                        const std::lock_guard lock(mutex);
                                        received += frame.stdout();
                                        if (frame.kind_case() == v1::ExecServerFrame::kExitCode) {
                                          exit_code = frame.exit_code();
                                        }
                                        EXPECT_EQ(frame.error(), "");
                                        changed.notify_all();
                                      },
                                      [](const Error&) {}},
                                     std::chrono::seconds(5));
  ASSERT_TRUE(socket.ok());
  v1::ExecClientFrame frame;
  frame.mutable_start()->set_id(placed.id());
  frame.mutable_start()->add_command("cat");
  (*socket)->send(frame.SerializeAsString());
  std::string sent;
  for (int i = 0; i < 64; ++i) {  // 4 MiB: more than the first window
    const std::string part(64 * 1024, static_cast<char>('a' + i % 26));
    frame.set_stdin(part);
    sent += part;
    ASSERT_TRUE((*socket)->send(frame.SerializeAsString()));
  }
  frame.set_stdin_closed(true);
  (*socket)->send(frame.SerializeAsString());
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return exit_code >= 0; }));
  EXPECT_EQ(exit_code, 7);
  EXPECT_EQ(received.size(), sent.size());
  EXPECT_TRUE(received == sent);
}

}  // namespace
}  // namespace bmgpu::integration
