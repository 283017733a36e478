#include "core/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/support/market.h"
#include "core/views.h"

namespace bmgpu::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CoreTest, AnEmptyMarketHasNoDeadline) {
  EXPECT_EQ(next_deadline(State()), std::nullopt);
  TestMarket market;
  market.run(Tick{});
  EXPECT_THAT(market.last_events(), IsEmpty());
}

TEST(CoreTest, TheNextDeadlineIsWhatATickWouldDo) {
  TestMarket market;
  market.add_node(1, 2);
  market.settle();
  EXPECT_EQ(next_deadline(market.state()), kStart + minutes(1));  // prices
  market.at(seconds(30));
  const LeaseId lease = lease_in(market.order(1, 1, minutes(10)));
  market.report_running(lease);
  market.at(minutes(10));
  market.settle();
  EXPECT_EQ(next_deadline(market.state()), kStart + minutes(10) + seconds(30));
  market.at(minutes(10) + milliseconds(29'999));
  market.settle();
  EXPECT_EQ(market.state().leases.at(lease).state, LeaseState::Running);
  market.at(minutes(10) + seconds(30));
  market.settle();
  EXPECT_EQ(market.state().leases.at(lease).state, LeaseState::Ending);
}

TEST(CoreTest, TimeNeverRunsBackwards) {
  TestMarket market;
  market.add_node(1, 2);
  market.at(minutes(10));
  market.order(1, 1, hours(1));
  market.at(minutes(5));
  const Answer later = market.order(1, 1, hours(1));
  EXPECT_EQ(market.state().leases.at(lease_in(later)).start, kStart + minutes(10));
}

TEST(CoreTest, NodesAreToldOnceWhatChangedForThem) {
  TestMarket market;
  market.add_node(1, 4);
  market.add_node(2, 4);
  const Answer first = market.order(1, 3, hours(1));
  EXPECT_THAT(market.last_requests(), ElementsAre(Request(SyncNode{NodeId(1)})));
  market.order(1, 4, hours(1));
  EXPECT_THAT(market.last_requests(), ElementsAre(Request(SyncNode{NodeId(2)})));
  market.report_running(lease_in(first));
  EXPECT_THAT(market.last_requests(), IsEmpty());
  market.run(ExtendLease{AccountId(1), order_in(first), hours(1), Price()});
  EXPECT_THAT(market.last_requests(), ElementsAre(Request(SyncNode{NodeId(1)})));
  market.order(1, 1, hours(1));
  market.run(DeclareNodeLost{NodeId(1), market.now()});
  EXPECT_EQ(market.last_events().size(), 3U);
  EXPECT_THAT(market.last_requests(), ElementsAre(Request(SyncNode{NodeId(1)})));
}

TEST(CoreTest, ANodeShallRunWhatItsLeasesSay) {
  TestMarket market;
  market.set_incarnation(Incarnation(7));
  market.add_node(1, 4);
  PlaceOrder order;
  order.tenant = AccountId(3);
  order.resources.gpus = 2;
  order.resources.cpu_millis = 1'500;
  order.duration = hours(2);
  order.restart = RestartPolicy::Never;
  const LeaseId lease = lease_in(market.run(order));
  const auto desired = desired_attempts(market.state(), NodeId(1));
  ASSERT_EQ(desired.size(), 1U);
  EXPECT_EQ(desired[0].lease, lease);
  EXPECT_EQ(desired[0].token, (FencingToken{Incarnation(7), AttemptNumber(1)}));
  EXPECT_THAT(desired[0].gpu_uuids, ElementsAre("n1-0", "n1-1"));
  EXPECT_EQ(desired[0].cpu_millis, 1'500);
  EXPECT_EQ(desired[0].memory_mib, 128'000);  // half of the node
  EXPECT_EQ(desired[0].scratch_mib, 200'000);
  EXPECT_EQ(desired[0].lease_end, kStart + hours(2));
  EXPECT_EQ(desired[0].restart, RestartPolicy::Never);
  EXPECT_FALSE(desired[0].stop);
  market.run(StopOrder{AccountId(3), OrderId(lease.value())});
  const auto stopped = desired_attempts(market.state(), NodeId(1));
  ASSERT_EQ(stopped.size(), 1U);  // until the node has said that nothing is left
  EXPECT_TRUE(stopped[0].stop);
  market.report_ended(lease);
  EXPECT_THAT(desired_attempts(market.state(), NodeId(1)), IsEmpty());
  EXPECT_THAT(desired_attempts(market.state(), NodeId(9)), IsEmpty());
}

TEST(CoreTest, OfAHundredWhoWantTheLastGpuOneWins) {
  TestMarket market;
  market.add_node(1, 1);
  int leases = 0;
  int waiting = 0;
  int refusals = 0;
  for (std::uint64_t tenant = 1; tenant <= 100; ++tenant) {
    PlaceOrder order;
    order.tenant = AccountId(tenant);
    order.resources.gpus = 1;
    order.duration = hours(1);
    order.refuse_if_unavailable = tenant % 2 == 0;
    const Answer answer = market.run(order);
    if (const Reason* reason = refusal_in(answer)) {
      EXPECT_EQ(reason->code, ReasonCode::NoCapacityNow);
      ++refusals;
    } else if (std::get<OrderAnswer>(answer).lease) {
      ++leases;
    } else {
      EXPECT_EQ(std::get<OrderAnswer>(answer).waiting->code, ReasonCode::NoCapacityNow);
      ++waiting;
    }
  }
  EXPECT_EQ(leases, 1);
  EXPECT_EQ(waiting, 49);
  EXPECT_EQ(refusals, 50);
}

TEST(CoreTest, PlacementFillsNodesInUseFirstAndKeepsLargeHoles) {
  TestMarket market;
  market.add_node(1, 8);
  market.add_node(2, 4);
  market.add_node(3, 4);
  const auto node_of = [&](const Answer& answer) {
    return market.state().leases.at(lease_in(answer)).allocations.back().ranks[0].node;
  };
  EXPECT_EQ(node_of(market.order(1, 1, hours(1))), NodeId(2));  // fewest free GPUs, then id
  EXPECT_EQ(node_of(market.order(1, 4, hours(1))), NodeId(3));  // fits exactly
  EXPECT_EQ(node_of(market.order(1, 4, hours(1))), NodeId(1));
  EXPECT_EQ(node_of(market.order(1, 3, hours(1))), NodeId(2));
  EXPECT_EQ(node_of(market.order(1, 4, hours(1))), NodeId(1));
}

TEST(CoreTest, CpuBesideTheGpusIsPartOfTheFit) {
  TestMarket market;
  market.add_node(1, 2);  // 16 cores
  PlaceOrder order;
  order.tenant = AccountId(1);
  order.resources.gpus = 1;
  order.resources.cpu_millis = 12'000;
  order.duration = hours(1);
  order.refuse_if_unavailable = true;
  lease_in(market.run(order));
  const Answer second = market.run(order);
  ASSERT_NE(refusal_in(second), nullptr);
  EXPECT_EQ(refusal_in(second)->code, ReasonCode::NodeResources);
  order.resources.cpu_millis = 4'000;
  lease_in(market.run(order));
}

TEST(CoreTest, LiveOrdersAreSeenByTheirTenant) {
  TestMarket market;
  market.add_node(1, 1);
  const OrderId leased = order_in(market.order(1, 1, hours(1)));
  const OrderId waiting = order_in(market.order(2, 1, hours(1)));
  EXPECT_THAT(live_orders(market.state(), AccountId(1)), ElementsAre(leased));
  EXPECT_THAT(live_orders(market.state(), AccountId(2)), ElementsAre(waiting));
  EXPECT_THAT(live_orders(market.state(), AccountId()), ElementsAre(leased, waiting));
  const auto view = find_order(market.state(), waiting, market.now());
  ASSERT_TRUE(view.has_value());
  ASSERT_NE(view->waiting, nullptr);
  EXPECT_EQ(view->lease, nullptr);
  EXPECT_EQ(view->waiting_reason->code, ReasonCode::NoCapacityNow);
  EXPECT_FALSE(find_order(market.state(), OrderId(999), market.now()).has_value());
}

TEST(CoreTest, ADeviceMovesToAnotherNodeWithItsId) {
  TestMarket market;
  market.add_node(1, 2);
  market.add_node(2, 1);
  const GpuId moved = market.state().gpu_of_uuid.at("n1-1");
  RegisterNode command{NodeId(2), AccountId(900), SiteId(1), {8'000, 64'000, 100'000},
                       {},        Driver::Real,   Price()};
  const GpuClassSpec spec{"NVIDIA A100 80GB PCIe", 81'920, Form::Pcie};
  command.gpus = {{"n2-0", spec}, {"n1-1", spec}};
  EXPECT_EQ(refusal_in(market.run(command))->code, ReasonCode::GpuInUse);
  RegisterNode without = command;
  without.node = NodeId(1);
  without.gpus = {{"n1-0", spec}};
  market.run(without);
  EXPECT_EQ(refusal_in(market.run(command)), nullptr);
  EXPECT_EQ(market.state().node_of_gpu.at(moved), NodeId(2));
  EXPECT_EQ(market.state().nodes.at(NodeId(1)).gpus.size(), 1U);
}

TEST(CoreTest, ADetailIsCutBetweenCharacters) {
  TestMarket market;
  market.add_node(1, 1);
  const LeaseId lease = lease_in(market.order(1, 1, hours(1)));
  const FencingToken token{Incarnation(1), AttemptNumber(1)};
  market.run(ReportAttemptEnded{lease, 0, token, EndReason::StartFailed, market.now(), std::nullopt,
                                std::string(999, 'x') + "\xC3\xA9" + std::string(100, 'y')});
  const LeaseEnded* ended = ended_in(market.last_events());
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->detail, std::string(999, 'x'));
}

TEST(CoreDeathTest, EventsThatDecideDidNotMakeStopTheProcess) {
  State state;
  EXPECT_DEATH(core::apply(state, Event(QuoteClosed{QuoteId(1)})), "no such quote");
  EXPECT_DEATH(core::apply(state, Event(NodeReadyChanged{NodeId(1), true})), "no such node");
  TestMarket market;
  market.add_node(1, 1);
  const LeaseId lease = lease_in(market.order(1, 1, hours(1)));
  State leased = market.state();
  const GpuId gpu = leased.gpu_of_uuid.at("n1-0");
  EXPECT_DEATH(core::apply(leased, Event(GpuStateChanged{gpu, GpuState::Free})),
               "offered without sanitizing");
  EXPECT_DEATH(core::apply(leased, Event(LeaseGranted{leased.leases.at(lease)})), "twice");
}

}  // namespace
}  // namespace bmgpu::core
