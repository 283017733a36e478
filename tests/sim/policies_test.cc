// The published policies on cases computed by hand from their formulas.
#include <gtest/gtest.h>

#include <set>

#include "sim/policies/bestfit.h"
#include "sim/policies/dotprod.h"
#include "sim/policies/fgd.h"
#include "sim/policies/gpuclustering.h"
#include "sim/policies/gpupacking.h"
#include "sim/policies/random.h"

namespace bmgpu::sim {
namespace {

Node node(std::vector<std::int32_t> gpus, std::int64_t cpu_millis = 64'000) {
  Node node;
  node.cpu_millis = cpu_millis;
  node.memory_mib = 1'000;
  node.gpus = std::move(gpus);
  return node;
}
Request share(std::int32_t thousandths) { return Request{1'000, 10, 1, thousandths, 0}; }
Request whole(std::int32_t gpus, std::int64_t cpu = 1'000) { return {cpu, 10, gpus, 1000, 0}; }
const Request kCpuOnly{1'000, 10, 0, 0, 0};

TEST(PolicyTest, TheHighestScoreWinsThenTheSmallestRank) {
  DotProdPolicy policy;
  EXPECT_EQ(policy.choose(std::vector<std::int32_t>{3, kDoesNotFit, 7, 7}), 2u);
  EXPECT_EQ(policy.choose(std::vector<std::int32_t>{kDoesNotFit, 0}), 1u);
  EXPECT_EQ(policy.choose(std::vector<std::int32_t>{kDoesNotFit}), std::nullopt);
}

TEST(PolicyTest, ASharesDeviceIsTheTightestTheFirstOfEquals) {
  DotProdPolicy policy;
  EXPECT_EQ(policy.device(node({1000, 500, 400, 400}), share(300)), 2u);
  EXPECT_EQ(policy.device(node({1000, 500, 400, 400}), share(450)), 1u);
}

TEST(DotProdTest, ScoresTheProductOfFreeAndAsked) {
  // CPU 64/128 · 32/128, GPU 2/8 · 1/8: half their sum is 0.078.
  EXPECT_EQ(DotProdPolicy().score(node({1000, 1000}), whole(1, 32'000)), 92);
}

TEST(BestFitTest, ScoresWhatIsLeft) {
  // 32 cores of 128 and 1 GPU of 8 are left: 1 − 0.125 − 0.0625.
  EXPECT_EQ(BestFitPolicy().score(node({1000, 1000}), whole(1, 32'000)), 81);
}

TEST(GpuPackingTest, PrefersDevicesInUseThenNodesInUse) {
  const GpuPackingPolicy policy;
  EXPECT_EQ(policy.score(node({1000, 600}), share(500)), 94);  // 100 − 60/10
  EXPECT_EQ(policy.score(node({1000, 600}), share(800)), 49);  // one free device opened
  EXPECT_EQ(policy.score(node({1000, 1000}), share(800)), 31);
  EXPECT_EQ(policy.score(node({1000, 600}), kCpuOnly), 0);
}

TEST(GpuClusteringTest, KeepsClassesTogether) {
  const GpuClusteringPolicy policy;
  Node mixed = node({1000, 1000});
  EXPECT_EQ(policy.score(mixed, share(500)), 43);  // 25 + 25 · 6000/8000
  take(mixed, share(500), 0);
  EXPECT_EQ(policy.score(mixed, share(400)), 95);  // 75 + 25 · 6500/8000
  EXPECT_EQ(policy.score(mixed, whole(1)), 20);    // others only
  take(mixed, whole(1), 0);
  EXPECT_EQ(policy.score(mixed, share(400)), 73);  // 50 + 25 · 7500/8000
  EXPECT_EQ(policy.score(mixed, kCpuOnly), 0);
}

TEST(FgdTest, ScoresTheGrowthOfFragmentation) {
  FgdPolicy policy({{whole(1), 1}, {share(500), 1}});
  EXPECT_DOUBLE_EQ(policy.fragmentation(node({1000})), 0);
  EXPECT_DOUBLE_EQ(policy.fragmentation(node({1000, 500})), 250);
  EXPECT_DOUBLE_EQ(policy.fragmentation(node({500, 500})), 500);
  EXPECT_EQ(policy.score(node({1000}), share(500)), 43);  // sigmoid(−0.25)
  EXPECT_EQ(policy.score(node({1000, 500}), share(500)), 56);
  EXPECT_EQ(policy.device(node({1000, 500}), share(500)), 1u);
  EXPECT_EQ(policy.score(node({1000}), kCpuOnly), 50);
}

TEST(RandomTest, TakesEveryFittingNodeAndDeviceAndNoOther) {
  RandomPolicy policy(1);
  const std::vector<std::int32_t> scores{kDoesNotFit, 0, kDoesNotFit, 0, 0};
  std::set<std::size_t> nodes;
  std::set<std::size_t> devices;
  for (int draw = 0; draw < 200; ++draw) {
    nodes.insert(*policy.choose(scores));
    devices.insert(policy.device(node({200, 500, 1000}), share(300)));
  }
  EXPECT_EQ(nodes, (std::set<std::size_t>{1, 3, 4}));
  EXPECT_EQ(devices, (std::set<std::size_t>{1, 2}));
  EXPECT_EQ(policy.choose(std::vector<std::int32_t>{kDoesNotFit}), std::nullopt);
}

TEST(ClusterTest, TakesWholeDevicesInOrderAndSharesWhereTold) {
  Node taken = node({500, 1000, 1000, 1000});
  take(taken, whole(2), 0);
  EXPECT_EQ(taken.gpus, (std::vector<std::int32_t>{500, 0, 0, 1000}));
  take(taken, share(300), 3);
  EXPECT_EQ(taken.gpus, (std::vector<std::int32_t>{500, 0, 0, 700}));
  EXPECT_EQ(taken.cpu_millis, 62'000);
  EXPECT_EQ(taken.memory_mib, 980);
}

}  // namespace
}  // namespace bmgpu::sim
