#include "sim/chaos/sim_shim.h"

#include <algorithm>
#include <utility>

#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {
namespace {

using agent_core::EndCause;
using agent_core::Phase;
using agent_core::ShimAction;
using agent_core::ShimPhase;

constexpr std::int64_t kMillisecondNs = 1'000'000;

Phase phase_of(ShimPhase phase) {
  switch (phase) {
    case ShimPhase::Preparing:
      return Phase::Preparing;
    case ShimPhase::Running:
      return Phase::Running;
    case ShimPhase::Ended:
      return Phase::Ended;
    default:
      return Phase::Ending;
  }
}

core::EndReason reason_of(EndCause cause) {
  switch (cause) {
    case EndCause::Stopped:
      return core::EndReason::Stopped;
    case EndCause::TimeUp:
      return core::EndReason::TimeUp;
    case EndCause::DeviceCheckFailed:
      return core::EndReason::DeviceCheckFailed;
    case EndCause::GpuLost:
      return core::EndReason::GpuLost;
    case EndCause::OutOfMemory:
      return core::EndReason::OutOfMemory;
    case EndCause::StartFailed:
      return core::EndReason::StartFailed;
    default:
      return core::EndReason::JobExited;
  }
}

EndCause cause_of(core::EndReason reason) {
  switch (reason) {
    case core::EndReason::Stopped:
      return EndCause::Stopped;
    case core::EndReason::TimeUp:
      return EndCause::TimeUp;
    case core::EndReason::StartFailed:
      return EndCause::StartFailed;
    case core::EndReason::DeviceCheckFailed:
      return EndCause::DeviceCheckFailed;
    default:
      return EndCause::JobExited;
  }
}

}  // namespace

SimShim::SimShim(SimNode& node, const agent_core::AttemptKey& key) : node_(node), key_(key) {}

template <typename Task>
void SimShim::after(Duration delay, Task task) {
  node_.world.timeline.after(delay, [&node = node_, key = key_, self = this, task] {
    if (node.shim(key) == self) {
      task();
    }
  });
}

AttemptDir& SimShim::dir() { return node_.disk.at(key_); }

agent_core::ShimWanted SimShim::wanted() {
  const Duration left = dir().want_end - node_.wall();
  agent_core::ShimWanted want;
  want.lease_end_ns = node_.boottime_ns() + left.count() * kMillisecondNs;
  want.stop = dir().want_stop ? EndCause::Stopped : EndCause::None;
  if (node_.world.sabotage == Sabotage::ShimIgnoresLeaseEnd) {
    want.lease_end_ns += hours(1).count() * kMillisecondNs;
  }
  return want;
}

void SimShim::begin() {
  for (std::size_t i = 0; i < dir().spec.gpu_uuids.size(); ++i) {
    state_.leased_minors.push_back(static_cast<std::uint32_t>(i));
  }
  if (dir().boot != node_.boot_number()) {
    apply(agent_core::ShimFailed{EndCause::NodeRestarted, "the node restarted"});
  } else if (dir().releasing || dir().status.phase == Phase::Ending ||
             node_.container(key_) != nullptr) {
    adopt();
  } else {
    begin_anew();
  }
}

void SimShim::adopt() {
  Container* container = node_.container(key_);
  if (dir().status.phase == Phase::Ending) {
    state_.exit_code = dir().status.exit_code;
    apply(agent_core::ShimFailed{cause_of(dir().status.reason), dir().status.detail});
  } else if (dir().releasing && container != nullptr && container->alive) {
    dir().released = true;
    apply(agent_core::ShimAdopted{wanted()});
  } else if (dir().releasing) {
    dir().released = true;
    apply(agent_core::ShimAdopted{wanted()});
    apply(agent_core::ShimJobEnded{container != nullptr && container->exit_code
                                       ? std::optional<int>(*container->exit_code)
                                       : std::nullopt,
                                   0, "its container was gone"});
  } else {
    node_.kill_container(key_, 125);
    node_.remove_container(key_);
    begin_anew();
  }
}

void SimShim::begin_anew() {
  dir().released = false;
  apply(wanted());
  if (state_.phase == ShimPhase::Preparing) {
    report();
    const Duration pull = node_.world.faults && node_.random.chance(1, 8)
                              ? seconds(node_.random.between(5, 60))
                              : milliseconds(node_.random.between(100, 3000));
    after(pull, [this] { prepare(); });
  }
}

void SimShim::prepare() {
  if (state_.phase != ShimPhase::Preparing) {
    return;
  }
  if (!node_.engine_works()) {
    after(seconds(1), [this] { prepare(); });
    return;
  }
  if (node_.world.faults && node_.random.chance(1, 60)) {
    apply(agent_core::ShimFailed{EndCause::StartFailed, "the image cannot be pulled"});
    return;
  }
  node_.create_container(key_, dir().want_end);
  after(milliseconds(node_.random.between(50, 500)), [this] {
    agent_core::ShimDevices devices;
    for (const std::uint32_t minor : state_.leased_minors) {
      devices.seen.push_back({minor, agent_core::kGpuMajor, minor, 0});
    }
    if (node_.world.faults && node_.random.chance(1, 80)) {
      devices.seen.pop_back();
    }
    apply(devices);
  });
}

void SimShim::want_changed() {
  node_.set_deadline(key_, dir().want_end);
  apply(wanted());
}

void SimShim::job_ended(std::int32_t exit_code) {
  if (!dir().status.ended) {
    dir().status.ended = node_.wall();
  }
  apply(agent_core::ShimJobEnded{exit_code, 0, ""});
}

void SimShim::apply(const agent_core::ShimEvent& event) {
  events_.push_back(event);
  if (stepping_) {
    return;
  }
  stepping_ = true;
  while (!events_.empty() && node_.shim(key_) == this) {
    const agent_core::ShimEvent next = events_.front();
    events_.pop_front();
    for (const ShimAction action : agent_core::step(state_, node_.boottime_ns(), next)) {
      perform(action);
    }
  }
  stepping_ = false;
  if (node_.shim(key_) == this) {
    watch_clock();
  }
}

void SimShim::perform(ShimAction action) {
  switch (action) {
    case ShimAction::Release:
      release();
      break;
    case ShimAction::Terminate:
      if (node_.random.chance(3, 4)) {
        after(milliseconds(node_.random.between(10, 6000)),
              [this] { node_.kill_container(key_, 143); });
      }
      break;
    case ShimAction::Kill:
      if (!dir().status.ended) {
        dir().status.ended = node_.wall();
        report();
      }
      after(milliseconds(node_.random.between(10, 300)), [this] {
        node_.kill_container(key_, 137);
        apply(agent_core::ShimAllDead{});
      });
      break;
    case ShimAction::Remove:
      after(milliseconds(node_.random.between(50, 1000)), [this] {
        node_.remove_container(key_);
        apply(agent_core::ShimRemoved{});
      });
      break;
    case ShimAction::Report:
      report();
      break;
    case ShimAction::Freeze:
    case ShimAction::Thaw:
      break;  // nobody asks for it yet: a want has no freeze reasons here
  }
}

void SimShim::release() {
  Container* container = node_.container(key_);
  if (container == nullptr || !container->alive) {
    events_.push_back(agent_core::ShimFailed{EndCause::StartFailed, "bm-init is gone"});
    return;
  }
  dir().releasing = true;
  dir().status.running_since = node_.wall();
  node_.release_container(key_);
  after(milliseconds(node_.random.between(1, 20)), [this] {
    dir().released = true;
    report();
  });
}

void SimShim::report() {
  if (state_.phase == ShimPhase::Running && !dir().released) {
    return;
  }
  AttemptStatus& status = dir().status;
  status.phase = phase_of(state_.phase);
  status.reason = reason_of(state_.cause);
  status.detail = state_.detail;
  status.exit_code = state_.exit_code;
  const bool ended = state_.phase == ShimPhase::Ended;
  if (ended && !status.ended) {
    status.ended = node_.wall();
  }
  node_.agent().status_changed(key_);
  if (ended) {
    node_.shim_exits(key_);
  }
}

void SimShim::watch_clock() {
  const std::optional<std::int64_t> at = agent_core::next_tick_ns(state_);
  if (!at || *at == tick_at_ns_) {
    return;
  }
  tick_at_ns_ = *at;
  const std::int64_t left_ms =
      std::max<std::int64_t>(0, (*at - node_.boottime_ns() + kMillisecondNs - 1) / kMillisecondNs);
  after(milliseconds(left_ms), [this, at = *at] {
    if (tick_at_ns_ == at) {
      apply(agent_core::ShimTick{});
    }
  });
}

}  // namespace bmgpu::sim
