#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace bmgpu {
namespace {

const std::vector<std::string> kWords = {"state_dir", "listen", "log", "A100", "A40"};

TEST(NearestTest, FindsSwapsMissingLettersAndWrongCase) {
  EXPECT_EQ(nearest("state_dri", kWords), "state_dir");
  EXPECT_EQ(nearest("lsten", kWords), "listen");
  EXPECT_EQ(nearest("a100", kWords), "A100");
}

TEST(NearestTest, HasNothingForFarOrHugeWords) {
  EXPECT_EQ(nearest("frequency", kWords), "");
  EXPECT_EQ(nearest(std::string(1000, 'a'), kWords), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace bmgpu
