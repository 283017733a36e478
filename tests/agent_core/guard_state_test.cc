#include "agent_core/guard_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/prng.h"

namespace bmgpu::agent_core {
namespace {

constexpr std::int64_t kMs = 1'000'000;

HeartbeatReply reply(std::uint64_t sequence, std::int64_t sent, std::uint64_t incarnation = 1,
                     std::uint64_t fence_ms = 2000) {
  return HeartbeatReply{sequence, sent, Incarnation(incarnation), fence_ms};
}

TEST(GuardStateTest, PermissionCountsFromTheSendNotTheAnswer) {
  GuardState guard;
  EXPECT_FALSE(permits(guard.permission(), 0));
  EXPECT_EQ(guard.next(10'000 * kMs), (HeartbeatToSend{1, 0}));
  EXPECT_EQ(guard.take(reply(1, 10'000 * kMs), 11'900 * kMs), AnswerVerdict::Granted);
  EXPECT_TRUE(permits(guard.permission(), 12'000 * kMs - 1));
  EXPECT_FALSE(permits(guard.permission(), 12'000 * kMs));
  EXPECT_EQ(guard.permission().grant, 1u);
}

TEST(GuardStateTest, LateAnswersNeverShortenIt) {
  GuardState guard;
  guard.next(10'000 * kMs);
  guard.next(10'500 * kMs);
  EXPECT_EQ(guard.take(reply(2, 10'500 * kMs), 11'900 * kMs), AnswerVerdict::Granted);
  EXPECT_EQ(guard.take(reply(1, 10'000 * kMs), 11'950 * kMs), AnswerVerdict::NotNewer);
  EXPECT_EQ(guard.permission().until_boottime_ns, 12'500 * kMs);
}

TEST(GuardStateTest, HeartbeatsNameTheNewestAnswer) {
  GuardState guard;
  guard.next(0);
  guard.next(500 * kMs);
  guard.take(reply(2, 500 * kMs), 600 * kMs);
  guard.take(reply(1, 0), 650 * kMs);
  EXPECT_EQ(guard.next(1000 * kMs), (HeartbeatToSend{3, 2}));
}

TEST(GuardStateTest, AnEndedPermissionIsNotExtendedButFollowedByANewGrant) {
  GuardState guard;
  guard.next(0);
  EXPECT_EQ(guard.take(reply(1, 0), 10 * kMs), AnswerVerdict::Granted);
  guard.next(1900 * kMs);
  EXPECT_EQ(guard.take(reply(2, 1900 * kMs), 1950 * kMs), AnswerVerdict::Extended);
  EXPECT_EQ(guard.permission().grant, 1u);
  guard.next(3890 * kMs);
  EXPECT_EQ(guard.take(reply(3, 3890 * kMs), 3900 * kMs), AnswerVerdict::Granted);
  EXPECT_EQ(guard.permission().grant, 2u);
}

TEST(GuardStateTest, AnAnswerThatArrivesAfterItsOwnEndGivesNothing) {
  GuardState guard;
  guard.next(0);
  EXPECT_EQ(guard.take(reply(1, 0), 2000 * kMs), AnswerVerdict::TooLate);
  EXPECT_FALSE(permits(guard.permission(), 2000 * kMs));
  EXPECT_EQ(guard.permission().grant, 0u);
  EXPECT_EQ(guard.last_answer_sequence(), 1u);
}

TEST(GuardStateTest, ForeignAnswersCountForNothing) {
  GuardState guard;
  guard.next(1000 * kMs);
  EXPECT_EQ(guard.take(reply(2, 1000 * kMs), 1001 * kMs), AnswerVerdict::Unknown);
  EXPECT_EQ(guard.take(reply(0, 0), 1001 * kMs), AnswerVerdict::Unknown);
  EXPECT_EQ(guard.take(reply(1, 1001 * kMs), 1001 * kMs), AnswerVerdict::Unknown);
  EXPECT_EQ(guard.take(reply(1, 1000 * kMs, 1, 0), 1001 * kMs), AnswerVerdict::Refused);
  EXPECT_EQ(guard.take(reply(1, 1000 * kMs, 1, 3'600'000), 1001 * kMs), AnswerVerdict::Refused);
  EXPECT_FALSE(permits(guard.permission(), 1001 * kMs));
  EXPECT_EQ(guard.last_answer_sequence(), 0u);
  EXPECT_EQ(guard.take(reply(1, 1000 * kMs), 1001 * kMs), AnswerVerdict::Granted);
}

TEST(GuardStateTest, AForgottenHeartbeatIsForeign) {
  GuardState guard;
  for (std::uint64_t i = 0; i <= GuardState::kRemembered; ++i) {
    guard.next(static_cast<std::int64_t>(i) * kMs);
  }
  EXPECT_EQ(guard.take(reply(1, 0), 65 * kMs), AnswerVerdict::Unknown);
  EXPECT_EQ(guard.take(reply(2, 1 * kMs), 65 * kMs), AnswerVerdict::Granted);
}

TEST(GuardStateTest, ARestoredMarketGivesItsOwnGrantAndTheOldOneIsSilenced) {
  GuardState guard;
  guard.next(0);
  guard.next(100 * kMs);
  guard.next(200 * kMs);
  EXPECT_EQ(guard.take(reply(2, 100 * kMs, 1), 210 * kMs), AnswerVerdict::Granted);
  EXPECT_EQ(guard.take(reply(1, 0, 2), 220 * kMs), AnswerVerdict::Granted);
  EXPECT_EQ(guard.permission().until_boottime_ns, 2000 * kMs);
  EXPECT_EQ(guard.permission().grant, 2u);
  EXPECT_EQ(guard.take(reply(3, 200 * kMs, 1), 230 * kMs), AnswerVerdict::OldIncarnation);
}

TEST(GuardStateTest, ContinuesTheGrantOfTheGuardBeforeIt) {
  GuardState first;
  first.next(0);
  first.take(reply(1, 0), 10 * kMs);
  GuardState second(first.permission());
  EXPECT_TRUE(permits(second.permission(), 1500 * kMs));
  second.next(1500 * kMs);
  EXPECT_EQ(second.take(reply(1, 1500 * kMs), 1510 * kMs), AnswerVerdict::Extended);
  EXPECT_EQ(second.permission().grant, 1u);
}

// Random sends, losses, delays and reordering against the definition: at every instant the node may
// act exactly if some answer that has arrived by then, before its own end, belongs to a heartbeat
// sent less than the fence ago.
TEST(GuardStateTest, AgreesWithTheDefinitionUnderLossDelayAndReordering) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng prng(seed);
    GuardState guard;
    std::multimap<std::int64_t, HeartbeatReply> in_flight;
    std::int64_t longest = 0;
    std::int64_t now = 0;
    for (int step = 0; step < 300; ++step) {
      now += static_cast<std::int64_t>(prng.next() % 500) * kMs;
      while (!in_flight.empty() && in_flight.begin()->first <= now) {
        const auto [at, answer] = *in_flight.begin();
        in_flight.erase(in_flight.begin());
        guard.take(answer, at);
        const std::int64_t until = answer.sent_boottime_ns + 2000 * kMs;
        if (until > at) {
          longest = std::max(longest, until);
        }
      }
      ASSERT_EQ(permits(guard.permission(), now), now < longest) << "seed " << seed;
      const HeartbeatToSend sent = guard.next(now);
      if (prng.next() % 3 != 0) {
        const std::int64_t delay = static_cast<std::int64_t>(prng.next() % 2500) * kMs;
        in_flight.emplace(now + delay, reply(sent.sequence, now));
      }
    }
  }
}

}  // namespace
}  // namespace bmgpu::agent_core
