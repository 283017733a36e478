// The guard's arithmetic: which answered heartbeats give the node permission, and until when.
//
// A permission lasts from s to s + fence, where s is CLOCK_BOOTTIME at the moment the answered
// heartbeat was *sent*: however late the answer came, bmd saw the node alive at s or later, so the
// permission ends at this node no later than bmd believes. Example with fence = 2 s:
//
//   sent #7 at 10.0 s, #8 at 10.5 s; the answer to #8 arrives at 11.9 s → permission to 12.5 s;
//   the answer to #7 arrives at 12.0 s → nothing changes (10.0 + 2.0 < 12.5).
//
// Only an answer that names a heartbeat which this guard sent, with the time that it was sent at,
// counts; one of an older market incarnation never does. What has ended is not extended: an answer
// that arrives after the end begins a new grant, with a higher number, so that nobody takes two
// permissions for one. An answer whose own permission has ended before it arrives gives nothing.
//
// No clock here: every time is CLOCK_BOOTTIME in nanoseconds and comes in. It restarts with the
// machine, so whoever stores a permission stores the boot id with it.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"

namespace bmgpu::agent_core {

struct Permission {
  std::int64_t until_boottime_ns = 0;  // valid while now < until; 0 = never granted
  std::int64_t sent_boottime_ns = 0;   // s: when the heartbeat that gave it was sent
  Incarnation incarnation;             // of the market that gave it
  std::uint64_t grant = 0;  // 1 for the first; +1 whenever a new one follows an ended one
  bool operator==(const Permission&) const = default;
};

constexpr bool permits(const Permission& permission, std::int64_t now_boottime_ns) {
  return now_boottime_ns < permission.until_boottime_ns;
}

struct HeartbeatToSend {
  std::uint64_t sequence = 0;              // 1 for the first
  std::uint64_t last_answer_sequence = 0;  // of the newest answer received; 0 = none
  bool operator==(const HeartbeatToSend&) const = default;
};

struct HeartbeatReply {
  std::uint64_t sequence = 0;
  std::int64_t sent_boottime_ns = 0;
  Incarnation incarnation;
  std::uint64_t fence_ms = 0;
};

// Why an answer gave or did not give a permission.
enum class AnswerVerdict {
  Extended,  // the permission now lasts longer
  Granted,   // the first one, or a new one after an ended one
  NotNewer,  // valid, but a newer heartbeat's answer was here before
  Unknown,   // names no heartbeat of this guard that is remembered, or another time of sending
  OldIncarnation,  // of a market that was restored since
  TooLate,         // its permission had ended when it arrived
  Refused,         // a fence of zero, or beyond kFenceMsMax
};

// Limits: answers to the last 64 heartbeats count (32 s at one each 0.5 s, far beyond any fence).
class GuardState {
 public:
  static constexpr std::size_t kRemembered = 64;
  static constexpr std::uint64_t kFenceMsMax = 10'000;

  GuardState() = default;
  // Continues after a guard of the same boot that published `before`.
  explicit GuardState(const Permission& before) : permission_(before) {}

  // The heartbeat to send now. REQUIRES: now does not go back.
  HeartbeatToSend next(std::int64_t now_boottime_ns);
  AnswerVerdict take(const HeartbeatReply& reply, std::int64_t now_boottime_ns);

  const Permission& permission() const { return permission_; }
  std::uint64_t last_sent_sequence() const { return last_sent_; }
  std::uint64_t last_answer_sequence() const { return last_answer_; }

 private:
  std::int64_t& sent_at(std::uint64_t sequence) { return sent_[sequence % kRemembered]; }

  std::array<std::int64_t, kRemembered> sent_{};  // by sequence modulo kRemembered
  std::uint64_t last_sent_ = 0;
  std::uint64_t last_answer_ = 0;
  std::int64_t last_now_ = 0;
  Permission permission_;
};

}  // namespace bmgpu::agent_core
