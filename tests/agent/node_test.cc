// A node in a market: real bmd, real agent, guard, shims and podman; the GPUs are simulated.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/agent_process.h"
#include "agent/market_process.h"
#include "agent/permission_page.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/scratch.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kShortestMs = 60'000;
constexpr std::chrono::seconds kLong{120};

std::vector<std::string> numbered(const std::string& word, int count) {
  std::vector<std::string> lines;
  for (int i = 1; i <= count; ++i) {
    lines.push_back(word + std::to_string(i));
  }
  return lines;
}

class NodeTest : public testing::Test {
 protected:
  void stop_order(const std::string& id) {
    v1::StopOrderRequest request;
    request.set_id(id);
    market_.call<v1::Order>("StopOrder", request);
  }
  // The gate that is closed, "" if all are open.
  std::string closed_gate() {
    const v1::Node node = market_.node();
    for (const v1::Gate& gate : node.gates()) {
      if (!gate.open()) {
        return gate.name();
      }
    }
    return "";
  }
  bool all_free() {
    const v1::Node node = market_.node();
    return std::all_of(node.gpus().begin(), node.gpus().end(),
                       [](const v1::Gpu& gpu) { return gpu.state() == "free"; });
  }
  std::vector<std::string> containers() {
    std::vector<std::string> command = node_.podman();
    command.insert(command.end(), {"ps", "--all", "--no-trunc", "--format", "{{.Names}}"});
    const Result<std::string> out = run_ok(command);
    EXPECT_TRUE(out.ok()) << (out ? "" : out.error().message);
    std::vector<std::string> names;
    for (std::size_t at = 0, end = 0; out && (end = out->find('\n', at)) != std::string::npos;
         at = end + 1) {
      names.push_back(out->substr(at, end - at));
    }
    return names;
  }

  MarketProcess market_;
  AgentProcess node_{market_, "gpu7"};
};

TEST_F(NodeTest, AJobFromOrderToCharge) {
  const v1::Order order =
      market_.place(AgentProcess::shell("echo one; echo two >&2; ls /dev | grep -c '^nvidia[0-9]'; "
                                        "exit 3"),
                    2, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  const v1::Order ended = market_.order(order.id());
  EXPECT_EQ(ended.end_reason(), v1::END_REASON_JOB_EXITED) << ended.DebugString();
  EXPECT_EQ(ended.exit_code(), 3);
  EXPECT_GT(ended.charge_micros(), 0);
  EXPECT_LE(ended.charge_micros(), ended.quote_micros());
  std::vector<std::string> lines = market_.log(order.id());
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (std::vector<std::string>{"2", "one", "two"}));
  // The node is as before: nothing on disk, GPUs offered again.
  EXPECT_TRUE(eventually([this] { return all_free(); }));
  EXPECT_TRUE(eventually([this] { return list_attempts(node_.state_dir()).empty(); }));
  EXPECT_TRUE(containers().empty());
}

TEST_F(NodeTest, KilledAgentsLoseNoLineAndNoJob) {
  constexpr int kLines = 3000;
  const v1::Order order = market_.place(
      AgentProcess::shell("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; [ $((i % 10)) "
                          "-ne 0 ] || sleep 0.01; done"),
      1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
  for (int kill = 0; kill < 3; ++kill) {
    node_.kill();
    EXPECT_NE(market_.order(order.id()).state(), v1::ORDER_STATE_ENDED);
    node_.start();
    EXPECT_TRUE(node_.wait_until_offered());
  }
  EXPECT_EQ(market_.log(order.id()), numbered("line ", kLines));
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  const v1::Order ended = market_.order(order.id());
  EXPECT_EQ(ended.end_reason(), v1::END_REASON_JOB_EXITED) << ended.DebugString();
  EXPECT_EQ(ended.exit_code(), 0);
  EXPECT_EQ(ended.attempt(), 1u);
}

TEST_F(NodeTest, AJobThatEndsWhileTheAgentIsDeadIsReportedByTheNext) {
  const v1::Order order =
      market_.place(AgentProcess::shell("sleep 1; echo late; exit 5"), 1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
  node_.kill();
  const AttemptDir dir(node_.state_dir(), list_attempts(node_.state_dir()).at(0));
  ASSERT_TRUE(eventually([&] {
    const Result<v1::AttemptStatus> status = dir.read_status();
    return status && status->phase() == v1::ATTEMPT_PHASE_ENDED;
  }));
  node_.start();
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  EXPECT_EQ(market_.order(order.id()).exit_code(), 5);
  EXPECT_EQ(market_.log(order.id()), std::vector<std::string>{"late"});
}

TEST_F(NodeTest, AStopEndsTheJobAndItsGpusAreFreeAgain) {
  const v1::Order order = market_.place(AgentProcess::shell("echo up; sleep 1000"), 1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
  stop_order(order.id());
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  EXPECT_EQ(market_.order(order.id()).end_reason(), v1::END_REASON_STOPPED);
  EXPECT_TRUE(eventually([this] { return all_free(); }));
  EXPECT_TRUE(containers().empty());
}

TEST_F(NodeTest, StrayContainersGoAndForeignOnesStay) {
  const auto create = [this](const std::string& name, std::vector<std::string> labels) {
    std::vector<std::string> command = node_.podman();
    command.insert(command.end(), {"create", "--name", name, "--network=none",
                                   "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"});
    for (const std::string& label : labels) {
      command.insert(command.end(), {"--label", label});
    }
    command.insert(command.end(), {kImage, "sleep", "1000"});
    const Result<std::string> out = run_ok(command, {std::chrono::seconds(30), "", 65536, -1});
    ASSERT_TRUE(out.ok()) << out.error().message;
  };
  create("foreign-market",
         {"io.bmgpu.market=ffffffffffffffff", node_.label_of_node(), "io.bmgpu.lease=lease-999"});
  create("foreign-node",
         {node_.label_of_market(), "io.bmgpu.node=node-77", "io.bmgpu.lease=lease-999"});
  create("unlabelled", {});
  create("stray", {node_.label_of_market(), node_.label_of_node(), "io.bmgpu.lease=lease-999",
                   "io.bmgpu.rank=0", "io.bmgpu.attempt=1", "io.bmgpu.incarnation=1"});
  ASSERT_TRUE(eventually([this] { return containers().size() == 3; }));
  std::vector<std::string> left = containers();
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"foreign-market", "foreign-node", "unlabelled"}));
}

TEST_F(NodeTest, AFrozenEngineClosesTheGateThatNamesIt) {
  const pid_t service = *service_pid(node_.facts());
  ::kill(service, SIGSTOP);
  EXPECT_TRUE(eventually([this] { return market_.node().state() == "not-offered"; }));
  EXPECT_EQ(closed_gate(), "runtime");
  // It can still be stopped and started.
  EXPECT_EQ(node_.stop(), 0);
  node_.start();
  EXPECT_TRUE(eventually([this] { return closed_gate() == "runtime"; }));
  ::kill(service, SIGCONT);
  EXPECT_TRUE(node_.wait_until_offered());
}

// What nobody runs has ended, and is told so, whether or not the engine can remove it.
TEST_F(NodeTest, AFrozenEngineDelaysNoEnd) {
  std::vector<std::string> orders;
  for (const std::int64_t duration_ms : {kHourMs, kShortestMs}) {
    orders.push_back(market_.place(AgentProcess::shell("sleep 1000"), 1, duration_ms).id());
    ASSERT_TRUE(market_.wait_for(orders.back(), v1::ORDER_STATE_RUNNING));
  }
  std::vector<AttemptDir> attempts;
  std::vector<pid_t> jobs;
  for (const AttemptName& name : list_attempts(node_.state_dir())) {
    attempts.emplace_back(node_.state_dir(), name);
    jobs.push_back(attempts.back().read_memory()->pid());
    EXPECT_EQ(::kill(jobs.back(), 0), 0);  // the control
  }
  const pid_t service = *service_pid(node_.facts());
  ::kill(service, SIGSTOP);
  EXPECT_TRUE(eventually([this] { return closed_gate() == "runtime"; }));
  v1::ExplainRequest explain;
  explain.set_id("gpu7");
  const auto why = market_.call<v1::ExplainResponse>("Explain", explain).DebugString();
  EXPECT_NE(why.find("the podman service of this node has not answered"), std::string::npos) << why;
  stop_order(orders[0]);
  for (const std::string& order : orders) {
    EXPECT_TRUE(
        eventually([&] { return market_.order(order).state() == v1::ORDER_STATE_ENDED; }, kLong));
  }
  for (const pid_t job : jobs) {
    EXPECT_NE(::kill(job, 0), 0);
  }
  EXPECT_EQ(market_.order(orders[0]).end_reason(), v1::END_REASON_STOPPED);
  EXPECT_EQ(market_.order(orders[1]).end_reason(), v1::END_REASON_TIME_UP);
  EXPECT_LE(market_.order(orders[1]).charge_micros(), market_.order(orders[1]).quote_micros());
  EXPECT_EQ(closed_gate(), "runtime");
  ::kill(service, SIGCONT);
  EXPECT_TRUE(node_.wait_until_offered());
  EXPECT_TRUE(eventually([this] { return all_free(); }, kLong));
  EXPECT_TRUE(eventually([this] { return list_attempts(node_.state_dir()).empty(); }, kLong));
  EXPECT_TRUE(eventually([this] { return containers().empty(); }, kLong));
  EXPECT_EQ(containers(), std::vector<std::string>{});
  for (const AttemptDir& attempt : attempts) {
    EXPECT_TRUE(scratch_released(attempt.file("scratch.img")).ok());
  }
}

// A market that has lost its mind, or only a node for a while, does not end everything at once.
TEST_F(NodeTest, ASetThatWouldEndMostJobsIsHeldUntilAnOperatorConfirms) {
  std::vector<std::string> orders;
  for (int i = 0; i < 2; ++i) {
    orders.push_back(market_.place(AgentProcess::shell("sleep 1000"), 1, kHourMs).id());
    ASSERT_TRUE(market_.wait_for(orders.back(), v1::ORDER_STATE_RUNNING));
  }
  const pid_t guard =
      PermissionReader::open(permission_path(node_.state_dir()))->read(read_boot_id())->guard_pid;
  ::kill(guard, SIGSTOP);
  for (const std::string& order : orders) {
    EXPECT_TRUE(market_.wait_for(order, v1::ORDER_STATE_ENDED));
    EXPECT_EQ(market_.order(order).end_reason(), v1::END_REASON_NODE_LOST);
  }
  ::kill(guard, SIGCONT);
  EXPECT_TRUE(eventually([this] { return closed_gate() == "desired"; }));
  EXPECT_EQ(containers().size(), 2u);
  v1::NodeRequest confirm;
  confirm.set_node("gpu7");
  market_.call<v1::Node>("ResumeNode", confirm);
  EXPECT_TRUE(eventually([this] { return containers().empty(); }));
  EXPECT_TRUE(node_.wait_until_offered());
}

TEST_F(NodeTest, AKilledMarketFindsItsJobRunning) {
  const v1::Order order = market_.place(
      AgentProcess::shell("i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; sleep 0.01; "
                          "done"),
      1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
  market_.kill();
  market_.start();
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  EXPECT_EQ(market_.order(order.id()).end_reason(), v1::END_REASON_JOB_EXITED);
  EXPECT_GT(market_.order(order.id()).charge_micros(), 0);
  EXPECT_EQ(market_.log(order.id()), numbered("line ", 300));
}

TEST_F(NodeTest, TheLeaseEndsWithMarketAndAgentStopped) {
  const v1::Order order = market_.place(AgentProcess::shell("echo up; sleep 1000"), 1, kShortestMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
  EXPECT_EQ(node_.stop(), 0);
  market_.kill();
  const AttemptDir dir(node_.state_dir(), list_attempts(node_.state_dir()).at(0));
  EXPECT_TRUE(dir.shim_alive());
  ASSERT_TRUE(eventually(
      [&] {
        const Result<v1::AttemptStatus> status = dir.read_status();
        return status && status->phase() == v1::ATTEMPT_PHASE_ENDED;
      },
      std::chrono::seconds(90)));
  EXPECT_EQ(dir.read_status()->end_reason(), v1::END_REASON_TIME_UP);
  EXPECT_TRUE(containers().empty());
  market_.start();
  node_.start();
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  EXPECT_TRUE(node_.wait_until_offered());
}

TEST_F(NodeTest, TheGuardOutlivesItsAgentAndHoldsThePermission) {
  const PermissionReader page =
      std::move(*PermissionReader::open(permission_path(node_.state_dir())));
  const std::optional<PublishedPermission> before = page.read(read_boot_id());
  ASSERT_TRUE(before.has_value());
  EXPECT_TRUE(before->connected);
  node_.kill();
  ASSERT_TRUE(eventually([&] {
    return page.read(read_boot_id())->last_answer_sequence > before->last_answer_sequence + 4;
  }));
  EXPECT_EQ(page.read(read_boot_id())->permission.grant, before->permission.grant);
  EXPECT_EQ(page.read(read_boot_id())->guard_pid, before->guard_pid);
  node_.start();
  EXPECT_TRUE(node_.wait_until_offered());
  EXPECT_EQ(page.read(read_boot_id())->guard_pid, before->guard_pid);
}

TEST_F(NodeTest, AfterLeavingNothingIsLeftAndTheMachineCanJoinAgain) {
  const auto cdi_files = [this] {
    int ours = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/var/run/cdi")) {
      const Result<std::string> text = read_file(entry.path().string());
      ours += text && text->find(node_.state_dir()) != std::string::npos ? 1 : 0;
    }
    return ours;
  };
  EXPECT_EQ(cdi_files(), 1);
  const v1::RuntimeFacts facts = node_.facts();
  EXPECT_TRUE(std::filesystem::exists(facts.run_dir()));
  const v1::Order order = market_.place(AgentProcess::shell("sleep 1000"), 1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
  // With the agent running: leave ends it, and the job.
  EXPECT_EQ(node_.run({"leave"}), 0) << node_.said();
  EXPECT_EQ(node_.stop(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(node_.state_dir()));
  EXPECT_FALSE(std::filesystem::exists(facts.run_dir()));
  EXPECT_EQ(cdi_files(), 0);
  EXPECT_EQ(node_.run({"leave"}), 1);  // nothing to leave any more
  const TempDir temp;
  ASSERT_TRUE(write_file(temp.file("token"), market_.join_token("gpu8")).ok());
  EXPECT_EQ(node_.run({"join", "--token-file", temp.file("token")}), 0) << node_.said();
  EXPECT_NE(node_.said().find("as gpu8"), std::string::npos);
}

TEST_F(NodeTest, DoctorFindsNothingWrongAndNamesWhatIs) {
  EXPECT_EQ(node_.run({"doctor"}), 0);
  EXPECT_EQ(node_.stop(), 0);
  EXPECT_EQ(node_.run({"doctor", "--json"}), 1);
  EXPECT_NE(node_.said().find("start it: bm-agent run"), std::string::npos);
}

}  // namespace
}  // namespace bmgpu::agent
