#include "core/market/pricing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace bmgpu::core {
namespace {

// The exact price in thousandths of a micro-unit: "308434.601" → 308434601.
std::int64_t thousandths(std::string decimal) {
  const std::size_t point = decimal.find('.');
  std::string fraction = point == std::string::npos ? "" : decimal.substr(point + 1);
  fraction.resize(3, '0');
  return std::stoll(decimal.substr(0, point)) * 1'000 + std::stoll(fraction);
}

struct Vector {
  PriceInputs inputs;
  std::int64_t slot_index = 0;
  std::int64_t exact = 0;
};
std::vector<Vector> read_vectors() {
  std::ifstream file(BM_PRICE_VECTORS);
  std::vector<Vector> vectors;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    const auto next = [&] {
      std::string field;
      std::getline(fields, field, ',');
      return field;
    };
    Vector vector;
    vector.inputs.base_micros_per_gpu_hour = std::stoll(next());
    vector.inputs.demand = std::stoll(next());
    vector.inputs.supply = std::stoll(next());
    vector.inputs.load_permille = std::stoll(next());
    vector.slot_index = std::stoll(next());
    vector.exact = thousandths(next());
    vectors.push_back(vector);
  }
  return vectors;
}

TEST(PricingTest, AgreesWithTheExactVectorsToHalfAMicroUnit) {
  MarketPolicy policy;
  policy.surge_cap_permille = 10'000;  // the vectors are before the cap
  const auto weights = slot_weights(policy.duration_decay_permille);
  const std::vector<Vector> vectors = read_vectors();
  ASSERT_EQ(vectors.size(), 283U);
  for (const Vector& vector : vectors) {
    const Price price = slot_price(policy, weights, vector.inputs, vector.slot_index);
    EXPECT_LE(std::abs(price.count() * 1'000 - vector.exact), 500)
        << "demand " << vector.inputs.demand << " supply " << vector.inputs.supply << " slot "
        << vector.slot_index;
  }
}

TEST(PricingTest, WeightsFallAndEndAtTheKnee) {
  const auto weights = slot_weights(900);
  ASSERT_EQ(weights.size(), 38U);  // T·0.9^T is highest at 9.49 hours
  for (std::size_t i = 1; i < weights.size(); ++i) {
    EXPECT_LT(weights[i], weights[i - 1]);
  }
  // Their sum is C(9.5).
  Fixed sum;
  for (const Fixed weight : weights) {
    sum = sum + weight;
  }
  const Fixed hours = Fixed::from_ratio(19, 2);
  const Fixed whole = hours * pow_unit(Fixed::from_ratio(9, 10), hours);
  EXPECT_EQ(sum, whole);
}

TEST(PricingTest, WithoutDecayEverySlotCostsTheSame) {
  const auto weights = slot_weights(1000);
  EXPECT_EQ(weights.size(), 2'881U);  // the slots that 30 days can touch
  for (const Fixed weight : weights) {
    EXPECT_EQ(weight, Fixed::from_ratio(1, 4));
  }
}

TEST(PricingTest, FactorsEndAtThePrice) {
  const MarketPolicy policy;
  const auto weights = slot_weights(policy.duration_decay_permille);
  for (const std::int64_t demand : {0, 1, 5, 10, 100, 10'000}) {
    for (const std::int64_t load : {0, 700, 1'000}) {
      for (const std::int64_t owner_floor : {0, 100'000, 900'000}) {
        const PriceInputs inputs{1'000'000, demand, 10, load, Price(owner_floor)};
        const auto factors = price_factors(policy, weights, inputs, 3);
        ASSERT_EQ(factors.size(), 7U);
        EXPECT_EQ(factors.back().after, slot_price(policy, weights, inputs, 3));
        EXPECT_EQ(factors.front().after, Price(250'000));
      }
    }
  }
}

TEST(PricingTest, FloorCapAndOwnersFloorInThisOrder) {
  const MarketPolicy policy;
  const auto weights = slot_weights(policy.duration_decay_permille);
  const auto price = [&](std::int64_t demand, std::int64_t owner_floor) {
    return slot_price(policy, weights, PriceInputs{1'000'000, demand, 1, 1'000, Price(owner_floor)},
                      0);
  };
  EXPECT_EQ(price(0, 0), Price(75'000));                 // 0.3 × base
  EXPECT_EQ(price(1'000'000, 0), Price(750'000));        // 3 × base
  EXPECT_EQ(price(0, 80'000), Price(80'000));            // the owner asks more
  EXPECT_EQ(price(1'000'000, 800'000), Price(800'000));  // also more than the cap
  EXPECT_LT(price(1, 0), price(2, 0));
}

TEST(PricingTest, TheLargestInputsDoNotOverflow) {
  MarketPolicy policy;
  policy.demand_k_permille = 5'000;
  policy.load_slope_permille = 5'000;
  policy.load_threshold_permille = 0;
  policy.surge_cap_permille = 10'000;
  const auto weights = slot_weights(1'000);
  const PriceInputs inputs{4 * Limits::kPriceMax.count(), 64'000'000, 1, 1'000, Price()};
  EXPECT_EQ(slot_price(policy, weights, inputs, 0), Price(10 * Limits::kPriceMax.count()));
  EXPECT_EQ(slot_price(policy, weights, inputs, 2'880), Price(10 * Limits::kPriceMax.count()));
}

TEST(PricingTest, SlotsTouchedCountsPartialOnes) {
  const Instant start(900'000'000);
  EXPECT_EQ(slots_touched(start, start + kSlot), 1);
  EXPECT_EQ(slots_touched(start, start + kSlot + milliseconds(1)), 2);
  EXPECT_EQ(slots_touched(start - milliseconds(1), start + milliseconds(1)), 2);
}

TEST(PricingTest, LimitsCompareExactlyAndAveragesRoundUp) {
  const Instant start(900'000'000);
  const std::vector<Price> prices = {Price(100), Price(99)};
  const Instant end = start + kSlot + kSlot;
  EXPECT_TRUE(within_limit(prices, start, end, 1, Price(100)));
  EXPECT_FALSE(within_limit(prices, start, end, 1, Price(99)));
  EXPECT_TRUE(within_limit(prices, start, end, 2, Price(50)));
  EXPECT_TRUE(within_limit(prices, start, end, 1, Price()));  // none
  EXPECT_EQ(average_price(prices, start, end, 1), Price(100));
  EXPECT_EQ(average_price(prices, start, end, 2), Price(50));
}

}  // namespace
}  // namespace bmgpu::core
