// The arithmetic of heartbeats is tested through controld/liveness_test.cc; here, what restarts of
// bmd leave of it.
#include "agent_core/liveness_state.h"

#include <gtest/gtest.h>

namespace bmgpu::agent_core {
namespace {

constexpr NodeId kNode{1};
constexpr std::int64_t kSecondNs = 1'000'000'000;

TEST(LivenessStateTest, ARenewalByBmdItselfIsNoWordOfTheNode) {
  LivenessState state{LivenessTimes{}};
  state.watch(kNode, 0);
  EXPECT_EQ(state.lost(3 * kSecondNs).front().last_heard_ns, std::nullopt);
  const std::uint64_t connection = state.connected(kNode, 4 * kSecondNs);
  EXPECT_TRUE(state.heartbeat(kNode, connection, 1, 0, 5 * kSecondNs));
  state.renew_all(7 * kSecondNs);
  const auto lost = state.lost(10 * kSecondNs);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost.front().last_renewal_ns, 7 * kSecondNs);
  EXPECT_EQ(lost.front().last_heard_ns, 5 * kSecondNs);
}

TEST(LivenessStateTest, AShortLifeOfBmdSaysNothingNewOfNodes) {
  const Instant first(1'000'000);
  const StartRecord one = next_start({}, Instant(), first, {});
  const Instant end = first + minutes(5);
  const StartRecord two = next_start(one, end, end + seconds(10), {});
  EXPECT_EQ(two.seen, end);
  const StartRecord three = next_start(two, two.started + seconds(3), end + seconds(20), {});
  EXPECT_EQ(three.seen, end);
}

}  // namespace
}  // namespace bmgpu::agent_core
