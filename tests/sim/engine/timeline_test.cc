#include "sim/engine/timeline.h"

#include <gtest/gtest.h>

#include <vector>

namespace bmgpu::sim {
namespace {

TEST(TimelineTest, RunsByTimeAndThenByOrderOfScheduling) {
  Timeline timeline(Instant(1000));
  std::vector<int> ran;
  timeline.after(seconds(2), [&] { ran.push_back(3); });
  timeline.after(seconds(1), [&] {
    ran.push_back(1);
    timeline.at(Instant(0), [&] { ran.push_back(2); });  // a time that has passed: now
  });
  timeline.after(seconds(2), [&] { ran.push_back(4); });
  timeline.after(seconds(5), [&] { ran.push_back(5); });
  while (timeline.step(Instant(5000))) {
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(timeline.now(), Instant(5000));
}

}  // namespace
}  // namespace bmgpu::sim
