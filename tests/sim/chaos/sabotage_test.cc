// Positive controls: each part of the environment, broken on purpose, is found by the checker that
// is there for it, within a few seeds. Without sabotage the same seeds break no rule (chaos_test).
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>

#include "sim/chaos/seed_runner.h"

namespace bmgpu::sim {
namespace {

struct Case {
  const char* name;
  Sabotage sabotage;
  std::set<std::string> rules;  // one of them is the first to be broken
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class SabotageTest : public testing::TestWithParam<Case> {};
constexpr std::uint64_t kSeedsMax = 20;

TEST_P(SabotageTest, IsFound) {
  std::string told;
  for (std::uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    bool found = false;
    run_seeds({seed, seed}, 1, {GetParam().sabotage, 16}, [&](const SeedResult& result) {
      if (result.violation) {
        told += result.violation->rule + ": " + result.violation->detail + "\n";
        found = GetParam().rules.contains(result.violation->rule);
        EXPECT_FALSE(result.trace.empty());
      }
    });
    if (found) {
      return;
    }
  }
  FAIL() << "not found in " << kSeedsMax << " seeds; what was found:\n" << told;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SabotageTest,
    testing::Values(
        Case{"StoreAcknowledgesEarly",
             Sabotage::StoreAcknowledgesEarly,
             {"acknowledged-lost", "digest"}},
        Case{"MarketFreesGpusEarly", Sabotage::MarketFreesGpusEarly, {"gpu-twice"}},
        Case{"AgentIgnoresTokens", Sabotage::AgentIgnoresTokens, {"attempt-twice"}},
        Case{"ShimIgnoresLeaseEnd", Sabotage::ShimIgnoresLeaseEnd, {"orphan"}},
        Case{"AgentLiesAboutClean", Sabotage::AgentLiesAboutClean, {"gpu-twice"}},
        Case{"BillsAreInflated", Sabotage::BillsAreInflated, {"charge"}},
        Case{"GuardExtendsPermissions", Sabotage::GuardExtendsPermissions, {"permission"}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace bmgpu::sim
