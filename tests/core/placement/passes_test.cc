// Each placement pass alone, on cases small enough to compute by hand.
#include <gtest/gtest.h>

#include "core/placement/filter.h"
#include "core/placement/fragmentation.h"
#include "core/placement/packing.h"
#include "core/placement/packing_prices.h"

namespace bmgpu::core {
namespace {

using Gpus = std::vector<std::int32_t>;

RequestShape share(std::int32_t thousandths, std::int64_t cpu_millis = 0) {
  return RequestShape{cpu_millis, 0, 1, thousandths, 0};
}
RequestShape whole(std::int32_t gpus, std::int64_t cpu_millis = 0) {
  return RequestShape{cpu_millis, 0, gpus, 1000, 0};
}
NodeShape node(const Gpus& gpus, std::int64_t cpu_millis = 8'000, std::int32_t model = 0) {
  return NodeShape{model, cpu_millis, 1'024, gpus};
}

TEST(FilterPassTest, TakesWhatFitsInEveryRespect) {
  const Gpus gpus{1000, 400};
  const RequestShape request{8'000, 1'024, 1, 400, 1};
  EXPECT_TRUE(can_take(node(gpus), request));
  RequestShape too_much = request;
  too_much.cpu_millis = 8'001;
  EXPECT_FALSE(can_take(node(gpus), too_much));
  too_much = request;
  too_much.memory_mib = 1'025;
  EXPECT_FALSE(can_take(node(gpus), too_much));
  too_much = request;
  too_much.models = 2;
  EXPECT_FALSE(can_take(node(gpus), too_much));
  EXPECT_TRUE(can_take(node(gpus), whole(1)));
  EXPECT_FALSE(can_take(node(gpus), whole(2)));
}

TEST(FilterPassTest, WithoutGpuAnyModelWillDo) {
  EXPECT_TRUE(can_take(node(Gpus{0}), RequestShape{8'000, 0, 0, 0, 2}));
  EXPECT_FALSE(can_take(node(Gpus{0}), RequestShape{8'001, 0, 0, 0, 2}));
}

TEST(FragmentationPassTest, CountsWhatTypicalRequestsCannotUse) {
  // One whole GPU and one half are equally typical; the half also wants 4 cores.
  const Fragmentation pass({{whole(1), 1}, {share(500, 4'000), 1}}, 2);
  EXPECT_EQ(pass.expected_loss(node(Gpus{1000})), 0);
  EXPECT_EQ(pass.expected_loss(node(Gpus{500})), 250'000);          // of no use to the whole one
  EXPECT_EQ(pass.expected_loss(node(Gpus{1000, 400})), 400'000);    // 400 are too few for both
  EXPECT_EQ(pass.expected_loss(node(Gpus{1000}, 3'999)), 500'000);  // no CPU for the half
  EXPECT_EQ(pass.expected_loss(node(Gpus{0, 0})), 0);
}

TEST(FragmentationPassTest, OtherModelsAndNoGpuUseNothing) {
  RequestShape first_model = whole(1);
  first_model.models = 1;
  const Fragmentation pass({{first_model, 3}, {RequestShape{1'000, 0, 0, 0, 0}, 1}}, 2);
  EXPECT_EQ(pass.expected_loss(node(Gpus{1000}, 8'000, 0)), 250'000);
  EXPECT_EQ(pass.expected_loss(node(Gpus{1000}, 8'000, 1)), 1'000'000);
}

TEST(FragmentationPassTest, AnEmptyMixLosesNothing) {
  EXPECT_EQ(Fragmentation({}, 1).expected_loss(node(Gpus{500})), 0);
}

double price_of(const std::vector<PricedSize>& sizes, std::int32_t grains,
                std::uint64_t models = 0) {
  for (const PricedSize& size : sizes) {
    if (size.grains == grains && size.models == models) {
      return static_cast<double>(size.price_micros);
    }
  }
  ADD_FAILURE() << "no size of " << grains;
  return -1;
}

TEST(PackingPricesTest, ASizeThatNothingFitsBesideCostsAWholeGpu) {
  const auto sizes = packing_prices({{share(810), 10}, {whole(2), 10}}, {100});
  EXPECT_NEAR(price_of(sizes, 81), 1'000'000, 50);
  EXPECT_NEAR(price_of(sizes, 100), 1'000'000, 50);
  EXPECT_EQ(sizes.back().gpus, 20);
}

TEST(PackingPricesTest, TwoOfASizeShareAGpu) {
  EXPECT_NEAR(price_of(packing_prices({{share(470), 10}}, {100}), 47), 500'000, 50);
}

TEST(PackingPricesTest, WhatFillsHolesThatAbundCostsNothing) {
  const auto sizes = packing_prices({{share(810), 10}, {share(160), 1}}, {100});
  EXPECT_NEAR(price_of(sizes, 81), 1'000'000, 50);
  EXPECT_NEAR(price_of(sizes, 16), 0, 50);
}

TEST(PackingPricesTest, PartnersShareTheCostOfTheirGpu) {
  const auto sizes = packing_prices({{share(650), 10}, {share(320), 12}}, {100});
  EXPECT_NEAR(price_of(sizes, 65), 666'667, 50);  // three of 320 fill a GPU, so that is their price
  EXPECT_NEAR(price_of(sizes, 32), 333'333, 50);
}

TEST(PackingPricesTest, WhatCannotBeServedDoesNotMakeTheRestFree) {
  RequestShape rare = whole(1);
  rare.models = 1;
  const auto sizes = packing_prices({{rare, 10}, {whole(1), 90}}, {1, 99});
  EXPECT_GT(price_of(sizes, 100), 900'000);
  EXPECT_GT(price_of(sizes, 100, 1), 2 * price_of(sizes, 100));
}

TEST(PackingPricesTest, CpuIsTheAveragePerGpu) {
  const auto sizes = packing_prices({{whole(1, 8'000), 1}, {whole(3, 4'000), 1}}, {100});
  EXPECT_EQ(sizes.front().cpu_millis, 3'000);
}

TEST(PackingPricesTest, NoRequestForAGpuGivesNoSize) {
  EXPECT_TRUE(packing_prices({{RequestShape{1'000, 0, 0, 0, 0}, 5}}, {1}).empty());
  EXPECT_TRUE(packing_prices({}, {1}).empty());
}

TEST(PackingPassTest, AGpuIsWorthTheDearestThatFillsIt) {
  const Packing pass({{47, 0, 10, 0, 500'000}, {32, 0, 10, 0, 333'333}}, 1);
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000})), 1'000'000);
  EXPECT_EQ(pass.worth_micros(node(Gpus{530})), 500'000);
  EXPECT_EQ(pass.worth_micros(node(Gpus{460, 319})), 333'333);
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000, 640})), 1'666'666);
}

TEST(PackingPassTest, AnotherModelIsWorthNothing) {
  const Packing pass({{100, 1, 10, 0, 1'000'000}}, 2);
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000}, 8'000, 0)), 1'000'000);
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000}, 8'000, 1)), 0);
}

TEST(PackingPassTest, GpusWithoutCpuAreWorthLess) {
  const Packing pass({{100, 0, 10, 10'000, 1'000'000}}, 1);
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000, 1000}, 20'000)), 2'000'000);
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000, 1000}, 0)), 0);
  // Half the CPU: at 0.12 GPU per core no GPU is worth its CPU, which leaves 10 · 0.12 = 1.2; at
  // the next price of 0.084 both together are worth 2 · 0.16 + 0.84.
  EXPECT_EQ(pass.worth_micros(node(Gpus{1000, 1000}, 10'000)), 1'160'000);
}

}  // namespace
}  // namespace bmgpu::core
