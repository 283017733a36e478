#include "sim/checkers/settled.h"

#include <gtest/gtest.h>

#include "core/support/market.h"

namespace bmgpu::sim {
namespace {

class SettledTest : public testing::Test {
 protected:
  SettledTest() { market.add_node(1, 2); }
  std::optional<std::string> problem() const {
    return unsettled(market.state(), containers, market.now());
  }
  void run_on_node(LeaseId lease) {
    promises.committed(market.history(), market.now());
    const agent_core::AttemptKey key{lease, 0, AttemptNumber(1)};
    containers.created(NodeId(1), key, {0}, market.now());
    containers.released(NodeId(1), key, market.now());
  }

  core::TestMarket market;
  Verdict verdict;
  Promises promises{verdict};
  Containers containers{verdict, promises};
};

TEST_F(SettledTest, FreeGpusAndRunningLeasesRest) {
  EXPECT_EQ(problem(), std::nullopt);
  const LeaseId lease = core::lease_in(market.order(1, 2, minutes(30)));
  market.report_running(lease);
  run_on_node(lease);
  market.order(2, 1, minutes(30));  // waits for capacity
  market.settle();
  EXPECT_EQ(problem(), std::nullopt);
}

TEST_F(SettledTest, WhatIsUnderWayDoesNot) {
  const LeaseId lease = core::lease_in(market.order(1, 1, minutes(30)));
  EXPECT_TRUE(problem()) << "preparing";
  market.report_running(lease);
  EXPECT_TRUE(problem()) << "nothing runs for it";
  market.run(core::StopOrder{AccountId(1), OrderId(lease.value())});
  EXPECT_TRUE(problem()) << "ending";
  market.report_ended(lease);
  EXPECT_TRUE(problem()) << "sanitizing";
  market.clean_all();
  EXPECT_EQ(problem(), std::nullopt);
  market.run(core::DrainNode{NodeId(1)});
  EXPECT_TRUE(problem()) << "drained";
}

TEST_F(SettledTest, AnOrderThatCouldStartDoesNotWait) {
  const LeaseId lease = core::lease_in(market.order(1, 2, minutes(30)));
  market.order(2, 1, minutes(30));
  market.report_ended(lease);
  market.clean_all();
  EXPECT_TRUE(problem()) << "the waiting order was not looked at yet";
  market.settle();
  EXPECT_TRUE(problem()) << "it has a lease that gets ready";
}

}  // namespace
}  // namespace bmgpu::sim
