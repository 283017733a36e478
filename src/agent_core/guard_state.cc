#include "agent_core/guard_state.h"

#include <algorithm>

#include "base/check.h"

namespace bmgpu::agent_core {
namespace {

constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;

}  // namespace

HeartbeatToSend GuardState::next(std::int64_t now_boottime_ns) {
  check(now_boottime_ns >= last_now_, "guard: boottime goes back");
  last_now_ = now_boottime_ns;
  ++last_sent_;
  sent_at(last_sent_) = now_boottime_ns;
  return HeartbeatToSend{last_sent_, last_answer_};
}

AnswerVerdict GuardState::take(const HeartbeatReply& reply, std::int64_t now_boottime_ns) {
  const bool remembered = reply.sequence >= 1 && reply.sequence <= last_sent_ &&
                          last_sent_ - reply.sequence < kRemembered;
  if (!remembered || sent_at(reply.sequence) != reply.sent_boottime_ns) {
    return AnswerVerdict::Unknown;
  }
  if (reply.incarnation < permission_.incarnation) {
    return AnswerVerdict::OldIncarnation;
  }
  if (reply.fence_ms == 0 || reply.fence_ms > kFenceMsMax) {
    return AnswerVerdict::Refused;
  }
  last_answer_ = std::max(last_answer_, reply.sequence);
  const std::int64_t until = reply.sent_boottime_ns +
                             static_cast<std::int64_t>(reply.fence_ms) * kNanosecondsPerMillisecond;
  if (until <= now_boottime_ns) {
    return AnswerVerdict::TooLate;
  }
  const bool live = permits(permission_, now_boottime_ns);
  if (live && until <= permission_.until_boottime_ns &&
      reply.incarnation == permission_.incarnation) {
    return AnswerVerdict::NotNewer;
  }
  // A restored market is another market: its word does not extend what the old one gave.
  const bool extends = live && reply.incarnation == permission_.incarnation;
  permission_.grant += extends ? 0 : 1;
  permission_.until_boottime_ns = until;
  permission_.sent_boottime_ns = reply.sent_boottime_ns;
  permission_.incarnation = reply.incarnation;
  return extends ? AnswerVerdict::Extended : AnswerVerdict::Granted;
}

}  // namespace bmgpu::agent_core
