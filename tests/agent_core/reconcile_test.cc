#include "agent_core/reconcile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bmgpu::agent_core {
namespace {

AttemptKey key(std::uint64_t lease) { return {LeaseId(lease), 0, AttemptNumber(1)}; }

DesiredSet desired(std::uint64_t sequence, const std::vector<std::uint64_t>& leases,
                   std::int64_t end = 1000) {
  DesiredSet set{Incarnation(1), Sequence(sequence), false, {}};
  for (const std::uint64_t lease : leases) {
    set.attempts.push_back({key(lease), Instant(end)});
  }
  return set;
}

ObservedAttempt running(std::uint64_t lease) {
  return {key(lease), Phase::Running, true, false, Instant(1000), false};
}
ObservedAttempt ended(std::uint64_t lease, bool log_complete) {
  return {key(lease), Phase::Ended, false, log_complete, Instant(1000), false};
}
std::vector<ObservedAttempt> running_up_to(std::uint64_t count) {
  std::vector<ObservedAttempt> attempts;
  for (std::uint64_t lease = 1; lease <= count; ++lease) {
    attempts.push_back(running(lease));
  }
  return attempts;
}

using Actions = std::vector<Action>;

TEST(ReconcilePlanTest, NothingToDoWhenTheNodeIsAsDesired) {
  EXPECT_EQ(plan(desired(1, {1, 2}), {{running(1), running(2)}, {}}), Actions{});
}

TEST(ReconcilePlanTest, CreatesWhatIsMissingAndStopsWhatIsNotWanted) {
  EXPECT_EQ(plan(desired(1, {1, 3}), {{running(2), running(3)}, {}}),
            (Actions{CreateAttempt{key(1)}, UpdateWant{key(2), Instant(1000), true}}));
}

TEST(ReconcilePlanTest, WithoutAnySetNoJobIsEndedAndDeadShimsComeBack) {
  ObservedAttempt orphan = running(1);
  orphan.shim_alive = false;
  EXPECT_EQ(plan(std::nullopt, {{orphan, running(2)}, {}}), (Actions{StartShim{key(1)}}));
}

TEST(ReconcilePlanTest, AnExtendedLeaseIsWrittenBeforeADeadShimIsReplaced) {
  ObservedAttempt orphan = running(1);
  orphan.shim_alive = false;
  EXPECT_EQ(plan(desired(1, {1}, 5000), {{orphan}, {}}),
            (Actions{UpdateWant{key(1), Instant(5000), false}, StartShim{key(1)}}));
}

TEST(ReconcilePlanTest, AStopOnceWrittenIsNotTakenBack) {
  ObservedAttempt stopping = running(1);
  stopping.want_stop = true;
  EXPECT_EQ(plan(desired(1, {1}), {{stopping}, {}}), Actions{});
  EXPECT_EQ(plan(desired(1, {}), {{stopping}, {}}), Actions{});
}

TEST(ReconcilePlanTest, ForgetsOnlyWhenEndAndLogAreTakenUp) {
  EXPECT_EQ(plan(desired(1, {1}), {{ended(1, true)}, {}}), Actions{});
  EXPECT_EQ(plan(desired(1, {}), {{ended(1, false)}, {}}), Actions{});
  EXPECT_EQ(plan(std::nullopt, {{ended(1, true)}, {}}), Actions{});
  ObservedAttempt cleaning = ended(1, true);
  cleaning.shim_alive = true;
  EXPECT_EQ(plan(desired(1, {}), {{cleaning}, {}}), Actions{});
  EXPECT_EQ(plan(desired(1, {}), {{ended(1, true)}, {}}), (Actions{Forget{key(1)}}));
}

TEST(ReconcilePlanTest, SaysTheEndOfWhatItNeverHadOrHasForgotten) {
  DesiredSet set = desired(1, {1, 2});
  set.attempts[0].stop = true;
  EXPECT_EQ(plan(set, {}), (Actions{ReportAbsent{key(1)}, CreateAttempt{key(2)}}));
}

TEST(ReconcilePlanTest, StopsWhatTheSetSaysToStopAndKeepsItUntilItsEndIsTakenUp) {
  DesiredSet set = desired(1, {1});
  set.attempts[0].stop = true;
  EXPECT_EQ(plan(set, {{running(1)}, {}}), (Actions{UpdateWant{key(1), Instant(1000), true}}));
  EXPECT_EQ(plan(set, {{ended(1, true)}, {}}), Actions{});
  EXPECT_EQ(judge(std::nullopt, set, {running(1)}, Instant(0)).ends, 1u);
}

TEST(ReconcilePlanTest, AGpuHasOneAttemptAtATime) {
  DesiredSet set = desired(1, {2});
  set.attempts[0].gpus = {"GPU-a", "GPU-b"};
  ObservedAttempt holder = running(1);
  holder.gpus = {"GPU-b"};
  EXPECT_EQ(plan(set, {{holder}, {}}), (Actions{UpdateWant{key(1), Instant(1000), true}}));
  holder.phase = Phase::Ended;  // its shim still cleans up
  EXPECT_EQ(plan(set, {{holder}, {}}), Actions{});
  holder.shim_alive = false;
  EXPECT_EQ(plan(set, {{holder}, {}}), (Actions{CreateAttempt{key(2)}}));
}

TEST(ReconcilePlanTest, AnEndedAttemptIsNeverStartedAgain) {
  EXPECT_EQ(plan(desired(1, {1}), {{ended(1, false)}, {}}), Actions{});
}

TEST(ReconcilePlanTest, RemovesStrayContainersOnly) {
  ObservedAttempt cleaning = ended(3, false);
  cleaning.shim_alive = true;
  const Observed observed{{running(1), ended(2, false), cleaning},
                          {{"live", key(1)},
                           {"left-behind", key(2)},
                           {"being-cleaned", key(3)},
                           {"unknown", key(4)},
                           {"nameless", std::nullopt}}};
  EXPECT_EQ(plan(std::nullopt, observed),
            (Actions{RemoveContainer{"left-behind"}, RemoveContainer{"unknown"},
                     RemoveContainer{"nameless"}}));
}

TEST(ReconcileJudgeTest, OlderAndRepeatedSetsAreIgnored) {
  const std::optional<DesiredSet> in_force = desired(5, {});
  EXPECT_EQ(judge(in_force, desired(4, {}), {}, Instant(0)).verdict, Verdict::Ignored);
  EXPECT_EQ(judge(in_force, desired(5, {}), {}, Instant(0)).verdict, Verdict::Ignored);
  EXPECT_EQ(judge(in_force, desired(6, {}), {}, Instant(0)).verdict, Verdict::InForce);
  DesiredSet restored = desired(1, {});
  restored.incarnation = Incarnation(2);
  EXPECT_EQ(judge(in_force, restored, {}, Instant(0)).verdict, Verdict::InForce);
  EXPECT_EQ(judge(restored, desired(99, {}), {}, Instant(0)).verdict, Verdict::Ignored);
}

TEST(ReconcileJudgeTest, HoldsExactlyMoreThanOneAndMoreThanAFifth) {
  for (std::uint64_t jobs = 0; jobs <= 12; ++jobs) {
    for (std::uint64_t ends = 0; ends <= jobs; ++ends) {
      std::vector<std::uint64_t> kept;
      for (std::uint64_t lease = ends + 1; lease <= jobs; ++lease) {
        kept.push_back(lease);
      }
      DesiredSet set = desired(1, kept);
      const Judgement judgement = judge(std::nullopt, set, running_up_to(jobs), Instant(0));
      const bool held = ends > 1 && ends * 5 > jobs;
      EXPECT_EQ(judgement.verdict, held ? Verdict::Held : Verdict::InForce) << jobs << " " << ends;
      EXPECT_EQ(judgement.ends, ends);
      EXPECT_EQ(judgement.jobs, jobs);
      set.confirmed = true;
      EXPECT_EQ(judge(std::nullopt, set, running_up_to(jobs), Instant(0)).verdict,
                Verdict::InForce);
    }
  }
}

TEST(ReconcileJudgeTest, JobsThatEndByThemselvesDoNotCount) {
  std::vector<ObservedAttempt> attempts = running_up_to(3);
  EXPECT_EQ(judge(std::nullopt, desired(1, {}), attempts, Instant(999)).verdict, Verdict::Held);
  EXPECT_EQ(judge(std::nullopt, desired(1, {}), attempts, Instant(1000)).verdict, Verdict::InForce);
  attempts[0].want_stop = true;
  attempts[1].phase = Phase::Ending;
  const Judgement judgement = judge(std::nullopt, desired(1, {}), attempts, Instant(0));
  EXPECT_EQ(judgement.verdict, Verdict::InForce);
  EXPECT_EQ(judgement.jobs, 1u);
}

// --- Every small case ---

// One lease slot of a node in every combination of what is desired and observed.
struct Slot {
  int wanted;  // 0 no, 1 until 1000, 2 until 2000
  bool exists;
  ObservedAttempt attempt;
  bool container;
};

std::vector<Slot> every_slot(std::uint64_t lease) {
  std::vector<Slot> slots;
  for (int wanted = 0; wanted <= 2; ++wanted) {
    for (const bool container : {false, true}) {
      slots.push_back({wanted, false, {}, container});
      for (const Phase phase : {Phase::Preparing, Phase::Running, Phase::Ending, Phase::Ended}) {
        for (int flags = 0; flags < 8; ++flags) {
          const ObservedAttempt attempt{key(lease),       phase,         (flags & 1) != 0,
                                        (flags & 2) != 0, Instant(1000), (flags & 4) != 0};
          slots.push_back({wanted, true, attempt, container});
        }
      }
    }
  }
  return slots;
}

// The node after it has done everything that plan() asked for, and time has let shims finish.
void perform(const DesiredSet& set, const Actions& actions, Observed& node) {
  const auto attempt_of = [&node](const AttemptKey& k) -> ObservedAttempt& {
    return *std::find_if(node.attempts.begin(), node.attempts.end(),
                         [&k](const ObservedAttempt& a) { return a.key == k; });
  };
  for (const Action& action : actions) {
    if (const auto* create = std::get_if<CreateAttempt>(&action)) {
      const auto wanted = std::find_if(set.attempts.begin(), set.attempts.end(),
                                       [&](const auto& a) { return a.key == create->key; });
      node.attempts.push_back(
          {create->key, Phase::Preparing, true, false, wanted->lease_end, false});
    } else if (const auto* update = std::get_if<UpdateWant>(&action)) {
      attempt_of(update->key).want_lease_end = update->lease_end;
      attempt_of(update->key).want_stop = update->stop;
    } else if (const auto* start = std::get_if<StartShim>(&action)) {
      attempt_of(start->key).shim_alive = true;
    } else if (const auto* forget = std::get_if<Forget>(&action)) {
      std::erase_if(node.attempts, [&](const auto& a) { return a.key == forget->key; });
    } else if (const auto* remove = std::get_if<RemoveContainer>(&action)) {
      std::erase_if(node.containers, [&](const auto& c) { return c.id == remove->id; });
    }
  }
  std::sort(node.attempts.begin(), node.attempts.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  for (ObservedAttempt& attempt : node.attempts) {
    if (attempt.want_stop && attempt.shim_alive) {
      attempt.phase = Phase::Ended;
    }
    if (attempt.phase == Phase::Ended) {
      std::erase_if(node.containers, [&](const auto& c) { return c.key == attempt.key; });
      attempt.shim_alive = false;
      attempt.log_complete = true;
    }
  }
}

// Safety: what is wanted and has not ended is never stopped, forgotten or bereft of its container.
void expect_safe(const DesiredSet& set, const Observed& node, const Actions& actions) {
  for (const Action& action : actions) {
    const auto wanted = [&set](const AttemptKey& k) {
      return std::any_of(set.attempts.begin(), set.attempts.end(),
                         [&k](const auto& a) { return a.key == k; });
    };
    if (const auto* update = std::get_if<UpdateWant>(&action)) {
      const auto at = std::find_if(node.attempts.begin(), node.attempts.end(),
                                   [&](const auto& a) { return a.key == update->key; });
      EXPECT_TRUE(!update->stop || at->want_stop || !wanted(update->key));
    } else if (const auto* forget = std::get_if<Forget>(&action)) {
      EXPECT_FALSE(wanted(forget->key));
    } else if (const auto* remove = std::get_if<RemoveContainer>(&action)) {
      for (const ObservedAttempt& attempt : node.attempts) {
        EXPECT_FALSE(attempt.phase != Phase::Ended &&
                     remove->id == std::to_string(attempt.key.lease.value()));
      }
    }
  }
}

TEST(ReconcilePlanTest, EveryCaseOfTwoLeasesConvergesSafely) {
  const std::vector<Slot> first = every_slot(1), second = every_slot(2);
  for (const Slot& a : first) {
    for (const Slot& b : second) {
      DesiredSet set = desired(1, {});
      Observed node;
      std::uint64_t lease = 0;
      for (const Slot* slot : {&a, &b}) {
        ++lease;
        if (slot->wanted > 0) {
          set.attempts.push_back({key(lease), Instant(slot->wanted * 1000)});
        }
        if (slot->exists) {
          node.attempts.push_back(slot->attempt);
        }
        if (slot->container) {
          node.containers.push_back({std::to_string(lease), key(lease)});
        }
      }
      int rounds = 0;
      for (Actions actions = plan(set, node); !actions.empty(); actions = plan(set, node)) {
        expect_safe(set, node, actions);
        ASSERT_LT(++rounds, 5) << "does not converge";
        perform(set, actions, node);
      }
      perform(set, {}, node);
      for (const DesiredAttempt& wanted : set.attempts) {
        const auto at =
            std::find_if(node.attempts.begin(), node.attempts.end(),
                         [&](const auto& attempt) { return attempt.key == wanted.key; });
        ASSERT_NE(at, node.attempts.end());
        EXPECT_TRUE(at->phase == Phase::Ended || at->want_lease_end == wanted.lease_end);
      }
    }
  }
}

}  // namespace
}  // namespace bmgpu::agent_core
