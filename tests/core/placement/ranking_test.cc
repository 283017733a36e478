// The passes together: which node wins, and that each pass alone can change it.
#include "core/placement/ranking.h"

#include <gtest/gtest.h>

namespace bmgpu::core {
namespace {

using Gpus = std::vector<std::int32_t>;

RequestShape share(std::int32_t thousandths) { return RequestShape{1'000, 0, 1, thousandths, 0}; }
RequestShape whole(std::int32_t gpus) { return RequestShape{1'000, 0, gpus, 1000, 0}; }
NodeShape node(const Gpus& gpus) { return NodeShape{0, 64'000, 0, gpus}; }

const Fleet kFleet{{100}};
constexpr RankPasses kNone{false, false, false};

std::int32_t score(const Ranking& ranking, const Gpus& gpus, const RequestShape& request,
                   bool in_use = true) {
  return ranking.fit(node(gpus), in_use, request).score;
}

TEST(RankingTest, PackingKeepsRoomForTheBetterPartner) {
  // 320 beside 650 is a full GPU; beside 470 it spoils the place of another 470.
  const std::vector<TypicalRequest> mix{{share(650), 10}, {share(320), 10}, {share(470), 10}};
  const Ranking with(mix, kFleet, RankPasses{.fragmentation = false});
  EXPECT_GT(score(with, {350}, share(320)), score(with, {530}, share(320)));
  const Ranking without(mix, kFleet, kNone);
  EXPECT_EQ(score(without, {350}, share(320)), score(without, {530}, share(320)));
}

TEST(RankingTest, FragmentationKeepsNodesWholeForLargeRequests) {
  const std::vector<TypicalRequest> mix{{whole(1), 10}, {whole(4), 10}};
  const Ranking with(mix, kFleet, RankPasses{.packing = false});
  EXPECT_GT(score(with, {1000, 1000, 0, 0}, whole(1)),
            score(with, {1000, 1000, 1000, 1000}, whole(1)));
  const Ranking without(mix, kFleet, RankPasses{.fragmentation = false});
  EXPECT_EQ(score(without, {1000, 1000, 0, 0}, whole(1)),
            score(without, {1000, 1000, 1000, 1000}, whole(1)));
}

TEST(RankingTest, NodesInUseWinTies) {
  const std::vector<TypicalRequest> mix{{whole(1), 1}};
  const Ranking with(mix, kFleet);
  EXPECT_GT(score(with, {1000}, whole(1), true), score(with, {1000}, whole(1), false));
  const Ranking without(mix, kFleet, RankPasses{.in_use = false});
  EXPECT_EQ(score(without, {1000}, whole(1), true), score(without, {1000}, whole(1), false));
}

TEST(RankingTest, AShareGoesToTheGpuThatLosesLeast) {
  const Ranking ranking({{share(650), 10}, {share(320), 10}, {share(470), 10}}, kFleet);
  const Gpus gpus{1000, 530, 350};
  EXPECT_EQ(ranking.fit(node(gpus), true, share(320)).gpu, 2u);
  EXPECT_EQ(ranking.fit(node(gpus), true, share(470)).gpu, 1u);
  EXPECT_EQ(ranking.fit(node(gpus), true, share(650)).gpu, 0u);
}

TEST(RankingTest, OfEqualGpusTheOneWithLeastLeftThenTheFirst) {
  const Ranking ranking({}, kFleet, kNone);
  EXPECT_EQ(ranking.fit(node({1000, 600, 500, 500}), true, share(100)).gpu, 2u);
  EXPECT_EQ(ranking.fit(node({1000, 600, 500, 500}), true, share(550)).gpu, 1u);
}

TEST(RankingTest, AnEmptyMixTellsNodesApartByUseOnly) {
  const Ranking ranking({}, kFleet);
  EXPECT_EQ(score(ranking, {1000, 1000}, whole(1)), score(ranking, {1000}, whole(1)));
}

}  // namespace
}  // namespace bmgpu::core
