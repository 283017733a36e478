#include "controld/liveness.h"

#include <gtest/gtest.h>

namespace bmgpu::controld {
namespace {

using namespace std::chrono_literals;

constexpr NodeId kNode(1);

class LivenessTest : public testing::Test {
 protected:
  bool is_lost(BootTime now) const { return !liveness.lost(now).empty(); }

  Liveness liveness{{3000ms, 2000ms}};
};

TEST_F(LivenessTest, AcknowledgedHeartbeatsRenew) {
  const std::uint64_t connection = liveness.connected(kNode, 0ms);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    EXPECT_TRUE(liveness.heartbeat(kNode, connection, n, n - 1, 500ms * n));
  }
  EXPECT_FALSE(is_lost(10'000ms + 2'400ms));
  EXPECT_TRUE(is_lost(9'500ms + 3'000ms));  // the newest acknowledged one was received at 9.5 s
  EXPECT_EQ(liveness.lost(15s).front().last_renewal, 9'500ms);
}

TEST_F(LivenessTest, HeartbeatsThatNameNoAnswerDoNotRenew) {
  const std::uint64_t connection = liveness.connected(kNode, 0ms);
  EXPECT_TRUE(liveness.heartbeat(kNode, connection, 1, 0, 100ms));
  EXPECT_TRUE(liveness.heartbeat(kNode, connection, 2, 0, 600ms));
  EXPECT_FALSE(is_lost(3'000ms));
  EXPECT_TRUE(is_lost(3'100ms));
}

// With the way to the node cut, no answer is given that could extend a permission beyond `lost`.
TEST_F(LivenessTest, NoAnswerOutlivesTheDeclarationOfLoss) {
  const std::uint64_t connection = liveness.connected(kNode, 0ms);
  BootTime last_answered{};
  for (std::uint64_t n = 1; n <= 40; ++n) {
    const BootTime now = 100ms * n;
    if (liveness.heartbeat(kNode, connection, n, 0, now)) {
      last_answered = now;
    }
  }
  const BootTime permission_ends = last_answered + 2000ms;
  EXPECT_FALSE(is_lost(permission_ends - 1ns));
  EXPECT_TRUE(is_lost(3'100ms));
  EXPECT_LE(permission_ends, 3'100ms);
}

TEST_F(LivenessTest, ANewConnectionRenewsAndOldOnesCountNoMore) {
  const std::uint64_t old = liveness.connected(kNode, 0ms);
  EXPECT_TRUE(liveness.heartbeat(kNode, old, 1, 0, 0ms));
  const std::uint64_t fresh = liveness.connected(kNode, 2500ms);
  EXPECT_FALSE(liveness.heartbeat(kNode, old, 2, 1, 2600ms));
  EXPECT_TRUE(liveness.heartbeat(kNode, fresh, 3, 1, 2600ms));
  EXPECT_FALSE(is_lost(5'500ms));
}

TEST_F(LivenessTest, AnAnswerOfAnotherConnectionAcknowledgesNothing) {
  const std::uint64_t connection = liveness.connected(kNode, 0ms);
  EXPECT_TRUE(liveness.heartbeat(kNode, connection, 1, 0, 0ms));
  EXPECT_TRUE(liveness.heartbeat(kNode, connection, 2, 77, 900ms));
  EXPECT_TRUE(is_lost(3'000ms));
}

TEST_F(LivenessTest, AGapOfBmdRenewsEveryone) {
  liveness.watch(kNode, 0ms);
  liveness.watch(NodeId(2), 0ms);
  EXPECT_EQ(liveness.lost(3s).size(), 2U);
  liveness.renew_all(3s);
  EXPECT_FALSE(is_lost(5'900ms));
  EXPECT_FALSE(liveness.silence(kNode, 4s));  // never heard, all the same
}

}  // namespace
}  // namespace bmgpu::controld
