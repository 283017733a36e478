#include "sim/checkers/promises.h"

#include <gtest/gtest.h>

namespace bmgpu::sim {
namespace {

constexpr Instant kNow{1'000'000};

core::Lease lease_with(Money quoted) {
  core::Lease lease;
  lease.id = LeaseId(5);
  lease.order = OrderId(5);
  lease.tenant = AccountId(1);
  lease.start = kNow;
  lease.end = kNow + minutes(10);
  lease.quoted = quoted;
  lease.billed_min = minutes(1);
  lease.allocations.push_back({lease.start, lease.end, {{NodeId(1), {}, 0, 0, 0}}});
  return lease;
}

core::Event ended(Money charged, Duration billed) {
  core::LeaseEnded event;
  event.id = LeaseId(5);
  event.order = OrderId(5);
  event.tenant = AccountId(1);
  event.charged = charged;
  event.billed = billed;
  return event;
}

class PromisesTest : public testing::Test {
 protected:
  std::string broken() const {
    return verdict.failed() ? verdict.violation()->rule : std::string();
  }
  void grant() { promises.committed({core::LeaseGranted{lease_with(Money(100))}}, kNow); }
  Request order(const std::string& key) const {
    return {AccountId(1), key, core::Command(core::PlaceOrder{})};
  }

  Verdict verdict;
  Promises promises{verdict};
};

TEST_F(PromisesTest, ABillWithinTheQuoteAndTheTimeIsFine) {
  grant();
  promises.job_started(LeaseId(5), kNow);
  promises.job_stopped(LeaseId(5), kNow + minutes(5));
  promises.committed({ended(Money(100), minutes(5))}, kNow + minutes(5));
  EXPECT_EQ(broken(), "");
}

TEST_F(PromisesTest, NobodyPaysMoreThanWasQuoted) {
  grant();
  promises.job_started(LeaseId(5), kNow);
  promises.committed({ended(Money(101), minutes(1))}, kNow + minutes(5));
  EXPECT_EQ(broken(), "charge");
}

TEST_F(PromisesTest, NobodyPaysForTimeThatNoNodeRan) {
  grant();
  promises.job_started(LeaseId(5), kNow);
  promises.job_stopped(LeaseId(5), kNow + minutes(2));
  promises.committed({ended(Money(50), minutes(2) + seconds(31))}, kNow + minutes(5));
  EXPECT_EQ(broken(), "charge");
}

TEST_F(PromisesTest, AnAcknowledgedOrderIsStillThereAfterARestart) {
  promises.committed(
      {core::OrderQueued{core::Order{OrderId(5), AccountId(1), {}, {}, {}, {}, {}, {}, {}}}}, kNow);
  Reply reply;
  reply.order = OrderId(5);
  promises.answered(order("k"), reply, kNow);
  core::State state;
  state.waiting[OrderId(5)];
  promises.restarted(state, kNow);
  EXPECT_EQ(broken(), "");
  promises.restarted(core::State(), kNow);
  EXPECT_EQ(broken(), "acknowledged-lost");
}

TEST_F(PromisesTest, AnAnswerWithALeaseComesAfterItsCommit) {
  Reply reply;
  reply.order = OrderId(5);
  reply.has_lease = true;
  promises.answered(order("k"), reply, kNow);
  EXPECT_EQ(broken(), "acknowledged-lost");
}

TEST_F(PromisesTest, OneKeyHasOneAnswer) {
  grant();
  Reply reply;
  reply.order = OrderId(5);
  promises.answered(order("k"), reply, kNow);
  promises.answered(order("k"), reply, kNow);
  EXPECT_EQ(broken(), "");
  reply.order = OrderId(6);
  promises.answered(order("k"), reply, kNow);
  EXPECT_EQ(broken(), "idempotency");
}

TEST_F(PromisesTest, ALeaseEndsOnce) {
  grant();
  promises.committed({ended(Money(), Duration())}, kNow);
  EXPECT_EQ(broken(), "");
  promises.committed({ended(Money(), Duration())}, kNow);
  EXPECT_EQ(broken(), "twice-ended");
}

}  // namespace
}  // namespace bmgpu::sim
