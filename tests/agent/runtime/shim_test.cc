// A shim with a real podman, from the order to the exit code. Needs root.
#include "agent/runtime/shim.h"

#include <gtest/gtest.h>

#include "agent/runtime/clock.h"
#include "agent/runtime/node_fixture.h"

namespace bmgpu::agent {
namespace {

using std::chrono::seconds;

TEST(ShimTest, RunsAJobAndReportsItsExitCode) {
  TestNode node;
  const AttemptDir dir = node.start(node.spec("echo out; printf tail; exit 3"));
  const v1::AttemptStatus status = node.ended(dir);
  EXPECT_EQ(status.end_reason(), v1::END_REASON_JOB_EXITED) << status.detail();
  EXPECT_EQ(status.exit_code(), 3);
  EXPECT_EQ(node.log(dir), "out\ntail");
  EXPECT_GT(status.running_since_unix_ms(), 0);
  EXPECT_GE(status.ended_unix_ms(), status.running_since_unix_ms());
  EXPECT_EQ(status.incarnation(), 7u);
  EXPECT_EQ(node.leftovers(), "");
}

}  // namespace
}  // namespace bmgpu::agent
