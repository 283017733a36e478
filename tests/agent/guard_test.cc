#include "agent/guard_heart.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "agent/fake_market.h"
#include "agent/host/facts.h"
#include "agent/node_file.h"
#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class GuardHeartTest : public testing::Test {
 protected:
  GuardHeartTest()
      : market_("bmgpu.v1.Agent/Heartbeat",
                [this](std::size_t, api::Socket& socket, const std::string& message) {
                  v1::Heartbeat heartbeat;
                  ASSERT_TRUE(heartbeat.ParseFromString(message));
                  node_ = heartbeat.node() == "node-1" ? 1 : 2;
                  last_acknowledged_ = heartbeat.last_answer_sequence();
                  if (answering_) {
                    v1::HeartbeatAnswer answer;
                    answer.set_sequence(heartbeat.sequence());
                    answer.set_sent_boottime_ns(heartbeat.sent_boottime_ns());
                    answer.set_incarnation(1);
                    answer.set_fence_ms(2000);
                    socket.send(answer.SerializeAsString());
                  }
                }) {
    join("node-1", "secret-1");
  }
  ~GuardHeartTest() override { stop(); }

  void join(const std::string& node, const std::string& secret) {
    v1::NodeFile file;
    file.set_node(node);
    file.set_name("gpu7");
    file.set_secret(secret);
    file.set_market("0123456789abcdef");
    file.set_url("http://" + market_.address());
    file.set_heartbeat(market_.address());
    ASSERT_TRUE(write_node_file(dir_.path(), file).ok());
  }
  void start() {
    ASSERT_TRUE(make_dirs(guard_dir(dir_.path())).ok());
    Result<std::unique_ptr<GuardHeart>> heart = GuardHeart::create(dir_.path(), log_);
    ASSERT_TRUE(heart.ok()) << heart.error().message;
    heart_ = std::move(*heart);
    thread_ = std::thread([this] { heart_->run(); });
  }
  // The node leaves its market: the guard ends by itself.
  void stop() {
    unlink(node_file_path(dir_.path()).c_str());
    if (thread_.joinable()) {
      thread_.join();
    }
    heart_.reset();
  }
  std::optional<PublishedPermission> published() const {
    const Result<PermissionReader> reader = PermissionReader::open(permission_path(dir_.path()));
    return reader ? reader->read(read_boot_id()) : std::nullopt;
  }
  bool permitted() const {
    const auto now = published();
    return now && agent_core::permits(now->permission, boottime_ms() * kMs);
  }

  TempDir dir_;
  wire::Log log_{{wire::LogLevel::Off, wire::LogFormat::Text, ""}};
  std::atomic<bool> answering_{true};
  std::atomic<int> node_{0};
  std::atomic<std::uint64_t> last_acknowledged_{0};
  FakeMarket market_;
  std::unique_ptr<GuardHeart> heart_;
  std::thread thread_;
};

TEST_F(GuardHeartTest, PublishesWhatAnsweredHeartbeatsPermit) {
  start();
  ASSERT_TRUE(market_.wait_until([this] { return permitted(); }));
  const PublishedPermission now = *published();
  EXPECT_EQ(now.permission.until_boottime_ns, now.permission.sent_boottime_ns + 2000 * kMs);
  EXPECT_EQ(now.permission.grant, 1u);
  EXPECT_EQ(now.guard_pid, getpid());
  EXPECT_TRUE(now.connected);
  ASSERT_TRUE(market_.wait_until([this] { return last_acknowledged_ >= 2; }));
  EXPECT_EQ(published()->permission.grant, 1u);
  EXPECT_EQ(market_.connections()[0].bearer, "secret-1");
}

TEST_F(GuardHeartTest, WithoutAnswersThePermissionEndsAndItConnectsAnew) {
  start();
  ASSERT_TRUE(market_.wait_until([this] { return permitted(); }));
  answering_ = false;
  ASSERT_TRUE(market_.wait_until([this] { return !permitted(); }));
  ASSERT_TRUE(market_.wait_until([this] { return market_.connections().size() >= 2; }));
  answering_ = true;
  ASSERT_TRUE(market_.wait_until([this] { return permitted(); }));
  EXPECT_EQ(published()->permission.grant, 2u);
}

TEST_F(GuardHeartTest, EndsWithTheNodeAndPermitsNothingThen) {
  start();
  ASSERT_TRUE(market_.wait_until([this] { return permitted(); }));
  stop();
  EXPECT_FALSE(permitted());
  EXPECT_EQ(published()->permission.grant, 1u);
}

TEST_F(GuardHeartTest, ANodeThatJoinedAnewIsHeardAsTheNewOne) {
  start();
  ASSERT_TRUE(market_.wait_until([this] { return node_ == 1; }));
  join("node-2", "secret-2");
  ASSERT_TRUE(market_.wait_until([this] { return node_ == 2; }));
  EXPECT_EQ(market_.connections().back().bearer, "secret-2");
}

}  // namespace
}  // namespace bmgpu::agent
