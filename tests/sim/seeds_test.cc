#include "sim/seeds.h"

#include <gtest/gtest.h>

namespace bmgpu::sim {
namespace {

TEST(SeedsTest, AreARangeOrOne) {
  EXPECT_EQ(parse_seeds("42-51", 1000)->last, 51u);
  EXPECT_EQ(parse_seeds("7", 1000)->last, 7u);
  for (const char* bad : {"", "a", "5-", "-5", "5-4", "1-1001", "1-2x", "1-2-3"}) {
    EXPECT_FALSE(parse_seeds(bad, 1000)) << bad;
  }
  EXPECT_TRUE(parse_seeds("1-1000", 1000));
}

}  // namespace
}  // namespace bmgpu::sim
