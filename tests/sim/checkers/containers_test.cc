#include "sim/checkers/containers.h"

#include <gtest/gtest.h>

namespace bmgpu::sim {
namespace {

constexpr NodeId kNode{1};
constexpr Instant kNow{1'000'000};

core::Event granted(std::uint64_t id) {
  core::Lease lease;
  lease.id = LeaseId(id);
  lease.order = OrderId(id);
  lease.tenant = AccountId(1);
  lease.gpus = 1;
  lease.start = kNow;
  lease.end = kNow + minutes(10);
  lease.allocations.push_back({lease.start, lease.end, {{kNode, {}, 0, 0, 0}}});
  return core::LeaseGranted{lease};
}

agent_core::AttemptKey key(std::uint64_t lease, std::uint64_t attempt = 1) {
  return {LeaseId(lease), 0, AttemptNumber(attempt)};
}

class ContainersTest : public testing::Test {
 protected:
  ContainersTest() { promises.committed({granted(1), granted(2)}, kNow); }
  std::string broken() const {
    return verdict.failed() ? verdict.violation()->rule : std::string();
  }

  Verdict verdict;
  Promises promises{verdict};
  Containers containers{verdict, promises};
};

TEST_F(ContainersTest, OneAfterTheOtherOnAGpuIsFine) {
  containers.created(kNode, key(1), {0}, kNow);
  containers.dead(kNode, key(1), kNow + seconds(1));
  containers.created(kNode, key(2), {0}, kNow + seconds(2));
  EXPECT_EQ(broken(), "");
}

TEST_F(ContainersTest, TwoOnAGpuAreNot) {
  containers.created(kNode, key(1), {0}, kNow);
  containers.created(kNode, key(2), {0}, kNow);
  EXPECT_EQ(broken(), "gpu-twice");
}

TEST_F(ContainersTest, ARankRunsOnceEverywhere) {
  containers.created(kNode, key(1), {0}, kNow);
  containers.released(kNode, key(1), kNow);
  containers.created(NodeId(2), key(1, 2), {0}, kNow);
  EXPECT_EQ(broken(), "");
  containers.released(NodeId(2), key(1, 2), kNow);
  EXPECT_EQ(broken(), "rank-twice");
}

TEST_F(ContainersTest, AnAttemptStartsItsJobOnce) {
  for (const bool is_second : {false, true}) {
    EXPECT_EQ(broken(), "");
    containers.created(kNode, key(1), {0}, kNow);
    containers.released(kNode, key(1), kNow);
    containers.dead(kNode, key(1), kNow + seconds(1));
    EXPECT_EQ(broken(), is_second ? "attempt-twice" : "");
  }
}

TEST_F(ContainersTest, NothingStartsBeforeItsLeaseIsDurable) {
  containers.created(kNode, key(3), {0}, kNow);
  EXPECT_EQ(broken(), "not-durable");
}

TEST_F(ContainersTest, NothingOutlivesItsLease) {
  containers.created(kNode, key(1), {0}, kNow);
  containers.check_ends(kNow + minutes(10) + seconds(30), seconds(30), false);
  EXPECT_EQ(broken(), "");
  containers.check_ends(kNow + minutes(10) + seconds(31), seconds(30), false);
  EXPECT_EQ(broken(), "orphan");
}

TEST_F(ContainersTest, WithANetworkNothingOutlivesTheMarketsWord) {
  containers.created(kNode, key(1), {0}, kNow);
  promises.committed({core::LeaseEnding{LeaseId(1), core::EndReason::Stopped, kNow, "", {}}}, kNow);
  containers.check_ends(kNow + seconds(31), seconds(30), false);
  EXPECT_EQ(broken(), "");
  containers.check_ends(kNow + seconds(31), seconds(30), true);
  EXPECT_EQ(broken(), "orphan");
}

}  // namespace
}  // namespace bmgpu::sim
