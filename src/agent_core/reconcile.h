// Reconciliation of a node: what the market wants and what the node sees → what to do next.
//
// Level-triggered: plan() looks at whole sets, never at changes, so a lost or repeated message, a
// restart of the agent or of bmd, or a failed action costs one more round and nothing else. An
// action that is under way must be visible in `Observed` (a directory, a living shim), or it is
// asked for again.
//
// What ends a job is decided here alone, in one place:
//   - a set that is older than the one in force is ignored;
//   - a set that would end more than one job and more than a fifth of the node's jobs at once is
//     held, whole, until a set that says `confirmed` arrives or one that ends fewer;
//   - without any set (bmd not seen since the start) no job is ended.
// Whatever bmd wants stopped stays in its set until the node has said that it ended, also when the
// node never had it or has forgotten it: no lease waits for a word that nobody will say.
// A GPU has one attempt at a time: one whose GPUs another attempt of this node still holds is
// created once that has ended and its shim is gone, whatever bmd believed when it gave them away.
// Containers are judged by what lies on this node, not by the set: one with this market's and this
// node's labels is stray once no live attempt of this node stands behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent_core/attempt.h"
#include "base/ids.h"
#include "base/time.h"

namespace bmgpu::agent_core {

struct DesiredAttempt {
  AttemptKey key;
  Instant lease_end;
  bool stop = false;                // the market waits for its end
  std::vector<std::string> gpus{};  // UUIDs
  bool operator==(const DesiredAttempt&) const = default;
};

// The full set of attempts that the node shall have. REQUIRES for use here: keys ascending, unique.
struct DesiredSet {
  Incarnation incarnation;
  Sequence sequence;
  bool confirmed = false;  // an operator agreed that it may end many jobs
  std::vector<DesiredAttempt> attempts;
  bool operator==(const DesiredSet&) const = default;
};

enum class Phase { Preparing, Running, Ending, Ended };

// An attempt whose directory exists on this node.
struct ObservedAttempt {
  AttemptKey key;
  Phase phase = Phase::Preparing;
  bool shim_alive = false;
  bool log_complete = false;  // bmd acknowledged every line and that no more will follow
  Instant want_lease_end;     // as last written for the shim
  bool want_stop = false;
  std::vector<std::string> gpus{};  // UUIDs
  bool operator==(const ObservedAttempt&) const = default;
};

// A container that carries this market's and this node's labels. Others are never looked at.
struct ObservedContainer {
  std::string id;
  std::optional<AttemptKey> key;  // absent: its labels do not name an attempt
  bool operator==(const ObservedContainer&) const = default;
};

struct Observed {
  std::vector<ObservedAttempt> attempts;  // keys ascending, unique
  std::vector<ObservedContainer> containers;
};

// --- Which set is in force ---

enum class Verdict { InForce, Ignored, Held };
struct Judgement {
  Verdict verdict = Verdict::Ignored;
  std::uint32_t ends = 0;  // running jobs that the set would end
  std::uint32_t jobs = 0;  // running jobs of the node
};

// What `offered` is to a node that has `in_force`. `now` tells which jobs end by themselves: one
// whose lease is over counts neither as a job nor as ended.
Judgement judge(const std::optional<DesiredSet>& in_force, const DesiredSet& offered,
                const std::vector<ObservedAttempt>& attempts, Instant now);

// --- What to do ---

struct CreateAttempt {
  AttemptKey key;
  bool operator==(const CreateAttempt&) const = default;
};
// Writes the shim's orders: when the lease ends, and whether to stop now.
struct UpdateWant {
  AttemptKey key;
  Instant lease_end;
  bool stop = false;
  bool operator==(const UpdateWant&) const = default;
};
// The attempt has not ended and nobody supervises it: a new shim adopts it.
struct StartShim {
  AttemptKey key;
  bool operator==(const StartShim&) const = default;
};
// Its end is known to bmd and its log complete there: nothing of it is needed any more.
struct Forget {
  AttemptKey key;
  bool operator==(const Forget&) const = default;
};
// bmd waits for the end of an attempt that this node does not have: say that nothing of it is left.
struct ReportAbsent {
  AttemptKey key;
  bool operator==(const ReportAbsent&) const = default;
};
struct RemoveContainer {
  std::string id;
  bool operator==(const RemoveContainer&) const = default;
};
using Action =
    std::variant<CreateAttempt, UpdateWant, StartShim, Forget, ReportAbsent, RemoveContainer>;

// In the order: attempts by key (orders before a new shim, so that it starts with them), then
// containers in their given order. Nothing to do: empty.
std::vector<Action> plan(const std::optional<DesiredSet>& in_force, const Observed& observed);

}  // namespace bmgpu::agent_core
