#include "agent/runtime/shim_status.h"

#include <gtest/gtest.h>

namespace bmgpu::agent {
namespace {

using agent_core::EndCause;

constexpr std::int64_t kBoot = 5'000'000'000;
constexpr std::int64_t kWall = 1'796'000'000'000;

TEST(ShimStatusTest, EveryCauseHasAReasonOfItsOwnAndBack) {
  for (const EndCause cause : {EndCause::None, EndCause::JobExited, EndCause::Stopped,
                               EndCause::TimeUp, EndCause::StartFailed, EndCause::DeviceCheckFailed,
                               EndCause::GpuLost, EndCause::OutOfMemory, EndCause::NodeRestarted}) {
    EXPECT_EQ(end_cause(end_reason(cause)), cause);
  }
}

TEST(ShimStatusTest, TheLeasesEndIsConvertedOnce) {
  v1::ShimOrder order;
  order.mutable_spec()->set_lease_end_unix_ms(kWall + 1000);
  v1::ShimMemory memory;
  EXPECT_EQ(wanted(order, {}, kBoot, kWall, memory).lease_end_ns, kBoot + 1'000'000'000);
  // The wall clock jumps by an hour; another shim reads the same memory.
  EXPECT_EQ(wanted(order, {}, kBoot + 1, kWall + 3'600'000, memory).lease_end_ns,
            kBoot + 1'000'000'000);
  v1::ShimWant want;
  want.set_lease_end_unix_ms(kWall + 2000);
  EXPECT_EQ(wanted(order, want, kBoot, kWall, memory).lease_end_ns, kBoot + 2'000'000'000);
}

TEST(ShimStatusTest, AbsurdEndsNeitherOverflowNorMeanNever) {
  v1::ShimOrder order;
  for (const std::int64_t end : {INT64_MIN, std::int64_t{0}, INT64_MAX}) {
    order.mutable_spec()->set_lease_end_unix_ms(end);
    v1::ShimMemory memory;
    const std::int64_t at = wanted(order, {}, kBoot, kWall, memory).lease_end_ns;
    EXPECT_EQ(at > kBoot, end == INT64_MAX) << end;
    EXPECT_GT(at, 0);
  }
}

TEST(ShimStatusTest, StopsAndFreezesAreTakenOver) {
  v1::ShimWant want;
  v1::ShimMemory memory;
  EXPECT_EQ(wanted({}, want, kBoot, kWall, memory).stop, EndCause::None);
  want.set_stop(true);
  EXPECT_EQ(wanted({}, want, kBoot, kWall, memory).stop, EndCause::Stopped);
  want.set_stop_reason(v1::END_REASON_GPU_LOST);
  want.set_stop_detail("GPU-1 fell off the bus");
  want.add_freeze(v1::FREEZE_REASON_FENCE);
  const agent_core::ShimWanted got = wanted({}, want, kBoot, kWall, memory);
  EXPECT_EQ(got.stop, EndCause::GpuLost);
  EXPECT_EQ(got.stop_detail, "GPU-1 fell off the bus");
  EXPECT_EQ(got.freeze.size(), 1u);
}

}  // namespace
}  // namespace bmgpu::agent
