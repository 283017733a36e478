#include "agent_core/shim_state.h"

#include <gtest/gtest.h>

namespace bmgpu::agent_core {
namespace {

using enum ShimAction;
using Actions = std::vector<ShimAction>;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kEnd = 100 * kSecond;

class ShimStateTest : public testing::Test {
 protected:
  ShimStateTest() {
    state_.leased_minors = {1, 3};
    EXPECT_EQ(at(0, want_), Actions());
  }
  Actions at(std::int64_t now, const ShimEvent& event) { return step(state_, now, event); }
  static ShimDevices devices(const std::vector<std::uint32_t>& minors) {
    ShimDevices out;
    for (const std::uint32_t minor : minors) {
      out.seen.push_back({minor, kGpuMajor, minor, 6});
    }
    return out;
  }
  void run() { ASSERT_EQ(at(kSecond, devices({3, 1})), (Actions{Release, Report})); }
  void end(EndCause cause) {
    EXPECT_EQ(state_.phase, ShimPhase::Killing);
    EXPECT_EQ(at(kSecond, ShimAllDead{}), Actions{Remove});
    EXPECT_EQ(at(kSecond, ShimRemoved{}), Actions{Report});
    EXPECT_EQ(state_.phase, ShimPhase::Ended);
    EXPECT_EQ(state_.cause, cause);
    EXPECT_EQ(next_tick_ns(state_), std::nullopt);
  }
  ShimWanted want_{kEnd, EndCause::None, "", {}};
  ShimState state_;
};

TEST_F(ShimStateTest, ReleasesAfterTheDeviceCheckAndEndsWithTheJob) {
  run();
  EXPECT_EQ(state_.gpus_seen, 2u);
  EXPECT_EQ(at(2 * kSecond, ShimJobEnded{3, 0, ""}), (Actions{Report, Kill}));
  end(EndCause::JobExited);
  EXPECT_EQ(state_.exit_code, 3);
}

TEST_F(ShimStateTest, AnyOtherDeviceSetIsRefused) {
  for (const std::vector<std::uint32_t>& minors :
       {std::vector<std::uint32_t>{}, {1}, {1, 2}, {1, 2, 3}, {1, 1, 3}}) {
    state_ = ShimState();
    state_.leased_minors = {1, 3};
    at(0, want_);
    EXPECT_EQ(at(kSecond, devices(minors)), (Actions{Report, Kill}));
    end(EndCause::DeviceCheckFailed);
    EXPECT_NE(state_.detail, "");
  }
}

TEST_F(ShimStateTest, ANodeThatIsAnotherDeviceOrBrokenIsRefused) {
  ShimDevices seen = devices({1, 3});
  seen.seen[0].minor = 2;
  EXPECT_EQ(at(kSecond, seen), (Actions{Report, Kill}));
  EXPECT_EQ(state_.cause, EndCause::DeviceCheckFailed);
  state_ = ShimState();
  state_.leased_minors = {1, 3};
  at(0, want_);
  seen = devices({1, 3});
  seen.seen[1].open_errno = 5;
  EXPECT_EQ(at(kSecond, seen), (Actions{Report, Kill}));
  EXPECT_EQ(state_.cause, EndCause::DeviceCheckFailed);
}

TEST_F(ShimStateTest, NothingIsReleasedAtOrAfterTheEnd) {
  EXPECT_EQ(at(kEnd, devices({1, 3})), (Actions{Report, Kill}));
  end(EndCause::TimeUp);
}

TEST_F(ShimStateTest, NothingIsReleasedOnceItShallStop) {
  want_.stop = EndCause::Stopped;
  EXPECT_EQ(at(kSecond, want_), (Actions{Report, Kill}));
  EXPECT_EQ(at(kSecond, devices({1, 3})), Actions());
  end(EndCause::Stopped);
}

TEST_F(ShimStateTest, AReleaseWaitsUntilNothingFreezes) {
  want_.freeze = {FreezeReason::Fence};
  EXPECT_EQ(at(0, want_), Actions());
  EXPECT_EQ(at(kSecond, devices({1, 3})), Actions());
  EXPECT_EQ(state_.phase, ShimPhase::Preparing);
  want_.freeze = {};
  EXPECT_EQ(at(2 * kSecond, want_), (Actions{Release, Report}));
}

TEST_F(ShimStateTest, EndsAtTheLeasesEndWithGrace) {
  run();
  EXPECT_EQ(next_tick_ns(state_), kEnd);
  EXPECT_EQ(at(kEnd - 1, ShimTick{}), Actions());
  EXPECT_EQ(at(kEnd, ShimTick{}), (Actions{Report, Terminate}));
  EXPECT_EQ(next_tick_ns(state_), kEnd + 5 * kSecond);
  EXPECT_EQ(at(kEnd + 5 * kSecond - 1, ShimTick{}), Actions());
  EXPECT_EQ(at(kEnd + 5 * kSecond, ShimTick{}), (Actions{Report, Kill}));
  end(EndCause::TimeUp);
  EXPECT_EQ(state_.exit_code, std::nullopt);
}

TEST_F(ShimStateTest, AJobThatLeavesDuringTheGraceKeepsTheCauseAndItsCode) {
  run();
  at(kEnd, ShimTick{});
  EXPECT_EQ(at(kEnd + 1, ShimJobEnded{0, 0, ""}), (Actions{Report, Kill}));
  end(EndCause::TimeUp);
  EXPECT_EQ(state_.exit_code, 0);
}

TEST_F(ShimStateTest, AnExtensionMovesTheEndAndComesTooLateAfterIt) {
  run();
  want_.lease_end_ns = 2 * kEnd;
  EXPECT_EQ(at(kEnd - 1, want_), Actions());
  EXPECT_EQ(at(kEnd, ShimTick{}), Actions());
  EXPECT_EQ(at(2 * kEnd, ShimTick{}), (Actions{Report, Terminate}));
  want_.lease_end_ns = 3 * kEnd;
  EXPECT_EQ(at(2 * kEnd + 1, want_), Actions());
  EXPECT_EQ(state_.phase, ShimPhase::Terminating);
}

TEST_F(ShimStateTest, FreezeReasonsAreASet) {
  run();
  want_.freeze = {FreezeReason::Snapshot};
  EXPECT_EQ(at(kSecond, want_), Actions{Freeze});
  want_.freeze = {FreezeReason::Snapshot, FreezeReason::Fence};
  EXPECT_EQ(at(kSecond, want_), Actions());
  want_.freeze = {FreezeReason::Fence};
  EXPECT_EQ(at(kSecond, want_), Actions());
  want_.freeze = {};
  EXPECT_EQ(at(kSecond, want_), Actions{Thaw});
}

TEST_F(ShimStateTest, WhatIsFrozenIsKilledWithoutBeingAsked) {
  run();
  want_.freeze = {FreezeReason::Fence};
  at(kSecond, want_);
  EXPECT_EQ(at(kEnd, ShimTick{}), (Actions{Report, Kill}));
  end(EndCause::TimeUp);
}

TEST_F(ShimStateTest, AFreezeDuringTheGraceKills) {
  run();
  at(kEnd, ShimTick{});
  want_.freeze = {FreezeReason::Fence};
  EXPECT_EQ(at(kEnd + 1, want_), (Actions{Report, Kill}));
}

TEST_F(ShimStateTest, TheMemoryLimitIsTheCauseOnlyIfTheJobFailed) {
  run();
  at(kSecond, ShimJobEnded{137, 1, ""});
  end(EndCause::OutOfMemory);
  state_ = ShimState();
  state_.leased_minors = {1, 3};
  at(0, want_);
  run();
  at(kSecond, ShimJobEnded{0, 1, ""});
  end(EndCause::JobExited);
  EXPECT_NE(state_.detail, "");
}

TEST_F(ShimStateTest, AFailureBeforeTheReleaseIsAStartFailure) {
  EXPECT_EQ(at(kSecond, ShimJobEnded{127, 0, ""}), (Actions{Report, Kill}));
  end(EndCause::StartFailed);
  EXPECT_EQ(state_.exit_code, std::nullopt);
}

TEST_F(ShimStateTest, TheFirstCauseStays) {
  EXPECT_EQ(at(kSecond, ShimFailed{EndCause::StartFailed, "no such image"}),
            (Actions{Report, Kill}));
  EXPECT_EQ(at(kSecond, ShimFailed{EndCause::Stopped, "late"}), Actions());
  EXPECT_EQ(at(kEnd, ShimTick{}), Actions());
  EXPECT_EQ(at(kEnd, ShimJobEnded{137, 1, ""}), Actions());
  end(EndCause::StartFailed);
  EXPECT_EQ(state_.detail, "no such image");
}

TEST_F(ShimStateTest, AnAdoptedJobIsThawedAndEndsInTime) {
  state_ = ShimState();
  state_.leased_minors = {1, 3};
  EXPECT_EQ(at(kSecond, ShimAdopted{want_}), (Actions{Thaw, Report}));
  EXPECT_EQ(state_.phase, ShimPhase::Running);
  EXPECT_EQ(state_.gpus_seen, 2u);
  EXPECT_EQ(at(kEnd, ShimTick{}), (Actions{Report, Terminate}));
}

TEST_F(ShimStateTest, AnAdoptedJobWhoseLeaseIsOverEndsAtOnce) {
  state_ = ShimState();
  EXPECT_EQ(at(kEnd + kSecond, ShimAdopted{want_}), (Actions{Thaw, Report, Report, Terminate}));
  EXPECT_EQ(at(kEnd + kSecond, ShimJobEnded{9, 0, ""}), (Actions{Report, Kill}));
  end(EndCause::TimeUp);
}

TEST_F(ShimStateTest, AnAdoptedJobThatIsFencedStaysFrozen) {
  state_ = ShimState();
  want_.freeze = {FreezeReason::Fence};
  EXPECT_EQ(at(kSecond, ShimAdopted{want_}), (Actions{Freeze, Report}));
}

}  // namespace
}  // namespace bmgpu::agent_core
