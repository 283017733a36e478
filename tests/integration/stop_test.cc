// Stopping what a node may never have had.
#include <memory>

#include "integration/market_fixture.h"

namespace bmgpu::integration {
namespace {

using StopTest = MarketTest;

TEST_F(StopTest, AStoppedLeaseStaysInTheDesiredSetUntilItsNodeSaysThatNothingIsLeft) {
  FakeAgent agent(bmd, {.runs_jobs = false});  // it has never had the attempt
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order(2), placed, "k"));
  v1::StopOrderRequest stop;
  stop.set_id(placed.lease());
  v1::Order stopped;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/StopOrder", stop, stopped, "s"));
  ASSERT_TRUE(agent.wait(
      [&] { return agent.desired().attempts_size() == 1 && agent.desired().attempts(0).stop(); }));
  v1::AttemptStatus status;
  status.set_lease(placed.lease());
  status.set_attempt(agent.desired().attempts(0).attempt());
  status.set_incarnation(agent.desired().attempts(0).incarnation());
  status.set_phase(v1::ATTEMPT_PHASE_ENDED);
  status.set_end_reason(v1::END_REASON_STOPPED);
  agent.send_status(status);
  const v1::Order ended = watch_until(*alice, placed.id(), [](const v1::Order& order) {
    return order.state() == v1::ORDER_STATE_ENDED;
  });
  EXPECT_EQ(ended.charge_micros(), 0);
  EXPECT_TRUE(agent.wait([&] { return agent.desired().attempts_size() == 0; }));
}

}  // namespace
}  // namespace bmgpu::integration
