#include "agent_core/reconcile.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "base/check.h"

namespace bmgpu::agent_core {
namespace {

// At most this part of the node's jobs may end at once without a confirmation: one in five.
constexpr std::uint32_t kEndsPerJobs = 5;

const DesiredAttempt* find(const DesiredSet& set, const AttemptKey& key) {
  const auto at = std::lower_bound(
      set.attempts.begin(), set.attempts.end(), key,
      [](const DesiredAttempt& attempt, const AttemptKey& k) { return attempt.key < k; });
  return at != set.attempts.end() && at->key == key ? &*at : nullptr;
}

const ObservedAttempt* find(const std::vector<ObservedAttempt>& attempts, const AttemptKey& key) {
  const auto at = std::lower_bound(
      attempts.begin(), attempts.end(), key,
      [](const ObservedAttempt& attempt, const AttemptKey& k) { return attempt.key < k; });
  return at != attempts.end() && at->key == key ? &*at : nullptr;
}

template <typename T>
bool ascending(const std::vector<T>& attempts) {
  return std::adjacent_find(attempts.begin(), attempts.end(), [](const T& a, const T& b) {
           return !(a.key < b.key);
         }) == attempts.end();
}

void plan_existing(const std::optional<DesiredSet>& in_force, const ObservedAttempt& attempt,
                   std::vector<Action>& actions) {
  const DesiredAttempt* wanted = in_force ? find(*in_force, attempt.key) : nullptr;
  const bool unwanted = in_force && wanted == nullptr;
  const bool to_stop = unwanted || (wanted != nullptr && wanted->stop);
  if (attempt.phase == Phase::Ended) {
    // bmd drops an attempt from the set only once it has taken up its end. The directory holds the
    // only copy of unacknowledged lines, so it stays until the log is complete there.
    if (unwanted && attempt.log_complete && !attempt.shim_alive) {
      actions.push_back(Forget{attempt.key});
    }
    return;
  }
  const Instant lease_end = wanted != nullptr ? wanted->lease_end : attempt.want_lease_end;
  // A stop once written is never taken back: the shim may have acted on it already.
  const bool stop = attempt.want_stop || to_stop;
  if (lease_end != attempt.want_lease_end || stop != attempt.want_stop) {
    actions.push_back(UpdateWant{attempt.key, lease_end, stop});
  }
  if (!attempt.shim_alive) {
    actions.push_back(StartShim{attempt.key});
  }
}

bool stray(const ObservedContainer& container, const std::vector<ObservedAttempt>& attempts) {
  if (!container.key) {
    return true;
  }
  const ObservedAttempt* attempt = find(attempts, *container.key);
  if (attempt == nullptr) {
    return true;
  }
  // A living shim still cleans up by itself.
  return attempt->phase == Phase::Ended && !attempt->shim_alive;
}

}  // namespace

Judgement judge(const std::optional<DesiredSet>& in_force, const DesiredSet& offered,
                const std::vector<ObservedAttempt>& attempts, Instant now) {
  check(ascending(offered.attempts), "judge: the offered set is not sorted");
  check(ascending(attempts), "judge: the observed attempts are not sorted");
  Judgement judgement;
  for (const ObservedAttempt& attempt : attempts) {
    const bool ends_anyway = attempt.want_stop || attempt.want_lease_end <= now;
    if (attempt.phase == Phase::Ended || attempt.phase == Phase::Ending || ends_anyway) {
      continue;
    }
    ++judgement.jobs;
    const DesiredAttempt* kept = find(offered, attempt.key);
    judgement.ends += kept == nullptr || kept->stop ? 1 : 0;
  }
  if (in_force && std::tie(offered.incarnation, offered.sequence) <=
                      std::tie(in_force->incarnation, in_force->sequence)) {
    judgement.verdict = Verdict::Ignored;
  } else if (!offered.confirmed && judgement.ends > 1 &&
             judgement.ends * kEndsPerJobs > judgement.jobs) {
    judgement.verdict = Verdict::Held;
  } else {
    judgement.verdict = Verdict::InForce;
  }
  return judgement;
}

std::vector<Action> plan(const std::optional<DesiredSet>& in_force, const Observed& observed) {
  check(!in_force || ascending(in_force->attempts), "plan: the desired set is not sorted");
  check(ascending(observed.attempts), "plan: the observed attempts are not sorted");
  std::vector<Action> actions;
  std::set<std::string_view> held;
  for (const ObservedAttempt& attempt : observed.attempts) {
    if (attempt.phase != Phase::Ended || attempt.shim_alive) {
      held.insert(attempt.gpus.begin(), attempt.gpus.end());
    }
  }
  const auto are_free = [&](const std::vector<std::string>& gpus) {
    return std::none_of(gpus.begin(), gpus.end(),
                        [&](const std::string& gpu) { return held.contains(gpu); });
  };
  // Merges two sorted lists, so that actions come in the order of the keys.
  const std::vector<DesiredAttempt> none;
  const std::vector<DesiredAttempt>& wanted = in_force ? in_force->attempts : none;
  auto next = wanted.begin();
  const auto create_until = [&](const AttemptKey* end) {
    for (; next != wanted.end() && (end == nullptr || next->key < *end); ++next) {
      if (next->stop) {
        actions.push_back(ReportAbsent{next->key});
      } else if (are_free(next->gpus)) {
        actions.push_back(CreateAttempt{next->key});
      }
    }
    if (end != nullptr && next != wanted.end() && next->key == *end) {
      ++next;
    }
  };
  for (const ObservedAttempt& attempt : observed.attempts) {
    create_until(&attempt.key);
    plan_existing(in_force, attempt, actions);
  }
  create_until(nullptr);
  for (const ObservedContainer& container : observed.containers) {
    if (stray(container, observed.attempts)) {
      actions.push_back(RemoveContainer{container.id});
    }
  }
  return actions;
}

}  // namespace bmgpu::agent_core
