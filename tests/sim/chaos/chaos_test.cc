#include <gtest/gtest.h>

#include <string>

#include "sim/chaos/seed_runner.h"

namespace bmgpu::sim {
namespace {

// The 200 seeds of every test run, in parts that run beside each other.
class ChaosSeedsTest : public testing::TestWithParam<std::uint64_t> {};
constexpr std::uint64_t kSeedsPerPart = 50;

TEST_P(ChaosSeedsTest, BreakNoRule) {
  const std::uint64_t first = 1 + GetParam() * kSeedsPerPart;
  std::uint64_t seeds = 0;
  run_seeds({first, first + kSeedsPerPart - 1}, 1, {}, [&](const SeedResult& result) {
    ++seeds;
    EXPECT_GT(result.core_events, 0u);
    if (result.violation) {
      std::string trace;
      for (const std::string& line : result.trace) {
        trace += line + "\n";
      }
      ADD_FAILURE() << "seed " << result.seed << " breaks " << result.violation->rule << ": "
                    << result.violation->detail << "\n"
                    << trace << "again: bmsim chaos --seeds " << result.seed;
    }
  });
  EXPECT_EQ(seeds, kSeedsPerPart);
}
INSTANTIATE_TEST_SUITE_P(Parts, ChaosSeedsTest, testing::Range<std::uint64_t>(0, 4));

TEST(ChaosTest, ASeedIsTheSameEveryTimeAndNoOther) {
  const SeedResult first = run_seed(7, {});
  EXPECT_EQ(run_seed(7, {}).digest, first.digest);
  EXPECT_NE(run_seed(8, {}).digest, first.digest);
}

}  // namespace
}  // namespace bmgpu::sim
