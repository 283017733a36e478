// The life of one attempt as its shim decides it: which action follows from what was seen. Pure;
// the shim performs the actions and reports what came of them.
//
//   Preparing ──devices ok──> Running ──end, stop──> Terminating ──grace──> Killing ──> Removing
//   ──> Ended
//        └── any failure, end, stop ─────────────────────────────────────────┘
//
// Rules that it keeps: the job is released only after the container held exactly the leased GPUs,
// before the lease's end, while nobody wants it stopped and no freeze reason is set; what is frozen
// is never asked to end (it could not) but killed; the container is removed only once every process
// of it is dead; the first cause of an end stays the cause.
//
// Times are CLOCK_BOOTTIME in nanoseconds and come in.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace bmgpu::agent_core {

enum class ShimPhase { Preparing, Running, Terminating, Killing, Removing, Ended };

enum class EndCause {
  None,
  JobExited,
  Stopped,
  TimeUp,
  StartFailed,
  DeviceCheckFailed,
  GpuLost,
  OutOfMemory,
  NodeRestarted,
};

enum class FreezeReason { Fence, Snapshot, Operator };

// One device node that could be opened inside: its minor number as its name says and as it is, and
// the errno of opening it (0 or ENXIO are the two good ones).
struct SeenDevice {
  std::uint32_t name_minor = 0;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  int open_errno = 0;
};

// What was seen.
struct ShimWanted {  // now, and whenever it changed
  std::int64_t lease_end_ns = 0;
  EndCause stop = EndCause::None;  // Stopped or GpuLost: end it now
  std::string stop_detail;
  std::set<FreezeReason> freeze;
};
struct ShimDevices {
  std::vector<SeenDevice> seen;
};
struct ShimAdopted {  // an earlier shim released the job
  ShimWanted wanted;
};
struct ShimFailed {  // it could not be prepared, started or kept
  EndCause cause = EndCause::StartFailed;
  std::string detail;
};
struct ShimJobEnded {
  std::optional<int> exit_code;
  std::uint64_t oom_kills = 0;
  std::string detail;  // empty = nothing beyond the exit code
};
struct ShimAllDead {};  // no process of the container is left
struct ShimRemoved {};  // or it takes long; nothing of the job runs, which is its end
struct ShimTick {};
using ShimEvent = std::variant<ShimWanted, ShimDevices, ShimAdopted, ShimFailed, ShimJobEnded,
                               ShimAllDead, ShimRemoved, ShimTick>;

enum class ShimAction {
  Release,    // let the job run: remember it durably, then tell bm-init
  Terminate,  // SIGTERM to the job
  Freeze,
  Thaw,
  Kill,    // every process, by cgroup files; then ShimAllDead
  Remove,  // container, network, scratch; then ShimRemoved
  Report,  // the status changed
};

struct ShimState {
  std::vector<std::uint32_t> leased_minors;  // sorted
  std::int64_t grace_ns = 5'000'000'000;
  ShimPhase phase = ShimPhase::Preparing;
  std::optional<ShimWanted> wanted;
  bool devices_ok = false;      // checked; the release waits for a thaw
  std::int64_t kill_at_ns = 0;  // while Terminating
  std::uint32_t gpus_seen = 0;
  EndCause cause = EndCause::None;
  std::string detail;
  std::optional<int> exit_code;
};

inline constexpr std::uint32_t kGpuMajor = 195;

// What to do now, in this order.
std::vector<ShimAction> step(ShimState& state, std::int64_t now_ns, const ShimEvent& event);

// When a ShimTick is due at the latest; empty: only an event moves it on.
std::optional<std::int64_t> next_tick_ns(const ShimState& state);

}  // namespace bmgpu::agent_core
