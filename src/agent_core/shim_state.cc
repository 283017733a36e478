#include "agent_core/shim_state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bmgpu::agent_core {
namespace {

using Actions = std::vector<ShimAction>;

constexpr int kNoSuchDeviceOrAddress = 6;  // ENXIO: the node is granted, no driver is behind it

bool frozen(const ShimState& state) { return state.wanted && !state.wanted->freeze.empty(); }

bool ending(const ShimState& state) { return state.phase > ShimPhase::Running; }

void blame(ShimState& state, EndCause cause, std::string detail) {
  if (state.cause == EndCause::None) {
    state.cause = cause;
    state.detail = std::move(detail);
  }
}

Actions kill_now(ShimState& state) {
  state.phase = ShimPhase::Killing;
  return {ShimAction::Report, ShimAction::Kill};
}

// What the want and the clock ask for, whatever event brought us here.
Actions due(ShimState& state, std::int64_t now_ns) {
  if (state.phase == ShimPhase::Terminating && (now_ns >= state.kill_at_ns || frozen(state))) {
    return kill_now(state);
  }
  if (ending(state) || !state.wanted) {
    return {};
  }
  if (state.wanted->stop != EndCause::None) {
    blame(state, state.wanted->stop, state.wanted->stop_detail);
  } else if (now_ns >= state.wanted->lease_end_ns) {
    blame(state, EndCause::TimeUp, "the lease ended");
  } else {
    return {};
  }
  if (state.phase == ShimPhase::Preparing || frozen(state)) {
    return kill_now(state);
  }
  state.phase = ShimPhase::Terminating;
  state.kill_at_ns = now_ns + state.grace_ns;
  return {ShimAction::Report, ShimAction::Terminate};
}

Actions release(ShimState& state) {
  if (state.phase != ShimPhase::Preparing || !state.devices_ok || !state.wanted || frozen(state)) {
    return {};
  }
  state.phase = ShimPhase::Running;
  return {ShimAction::Release, ShimAction::Report};
}

std::string list(const std::vector<std::uint32_t>& minors) {
  std::string out;
  for (const std::uint32_t minor : minors) {
    out += (out.empty() ? "" : ", ") + std::to_string(minor);
  }
  return out.empty() ? "none" : out;
}

// Empty if the container held exactly the leased GPUs.
std::string device_problem(const ShimState& state, const std::vector<SeenDevice>& seen) {
  std::vector<std::uint32_t> minors;
  for (const SeenDevice& device : seen) {
    const std::string name = "/dev/nvidia" + std::to_string(device.name_minor);
    if (device.major != kGpuMajor || device.minor != device.name_minor) {
      return name + " is device " + std::to_string(device.major) + ":" +
             std::to_string(device.minor) + " inside the container";
    }
    if (device.open_errno != 0 && device.open_errno != kNoSuchDeviceOrAddress) {
      return name + " does not open inside the container (errno " +
             std::to_string(device.open_errno) + ")";
    }
    minors.push_back(device.name_minor);
  }
  std::sort(minors.begin(), minors.end());
  if (minors != state.leased_minors) {
    return "GPU device nodes seen inside the container: " + list(minors) +
           "; leased: " + list(state.leased_minors);
  }
  return {};
}

Actions on(ShimState& state, const ShimWanted& wanted) {
  const bool was_frozen = frozen(state);
  state.wanted = wanted;
  if (state.phase == ShimPhase::Running && was_frozen != frozen(state)) {
    return {was_frozen ? ShimAction::Thaw : ShimAction::Freeze};
  }
  return {};
}

Actions on(ShimState& state, const ShimDevices& devices) {
  if (state.phase != ShimPhase::Preparing) {
    return {};
  }
  state.gpus_seen = static_cast<std::uint32_t>(devices.seen.size());
  if (std::string problem = device_problem(state, devices.seen); !problem.empty()) {
    blame(state, EndCause::DeviceCheckFailed, std::move(problem));
    return kill_now(state);
  }
  state.devices_ok = true;
  return {};
}

Actions on(ShimState& state, const ShimAdopted& adopted) {
  check(state.phase == ShimPhase::Preparing, "shim: only a shim that has just begun adopts");
  state.wanted = adopted.wanted;
  state.devices_ok = true;
  state.gpus_seen = static_cast<std::uint32_t>(state.leased_minors.size());
  state.phase = ShimPhase::Running;
  return {frozen(state) ? ShimAction::Freeze : ShimAction::Thaw, ShimAction::Report};
}

Actions on(ShimState& state, const ShimFailed& failed) {
  if (state.phase > ShimPhase::Terminating) {
    return {};
  }
  blame(state, failed.cause, failed.detail);
  return kill_now(state);
}

Actions on(ShimState& state, const ShimJobEnded& end) {
  if (state.phase > ShimPhase::Killing || state.exit_code) {
    return {};
  }
  // Once it is being killed, the exit code is ours and says nothing about the job.
  if (state.phase == ShimPhase::Killing) {
    return {};
  }
  if (state.phase == ShimPhase::Preparing) {
    blame(state, EndCause::StartFailed,
          end.detail.empty() ? "the container ended before the job was released" : end.detail);
    return kill_now(state);
  }
  state.exit_code = end.exit_code;
  if (end.oom_kills > 0 && end.exit_code != 0) {
    blame(state, EndCause::OutOfMemory, "the job hit its memory limit");
  } else if (end.oom_kills > 0) {
    blame(state, EndCause::JobExited, "a process of it was killed at the memory limit");
  } else {
    blame(state, EndCause::JobExited, end.detail);
  }
  return kill_now(state);
}

Actions on(ShimState& state, const ShimAllDead&) {
  if (state.phase != ShimPhase::Killing) {
    return {};
  }
  state.phase = ShimPhase::Removing;
  return {ShimAction::Remove};
}

Actions on(ShimState& state, const ShimRemoved&) {
  check(state.phase == ShimPhase::Removing, "shim: removed what it was not asked to remove");
  state.phase = ShimPhase::Ended;
  return {ShimAction::Report};
}

Actions on(ShimState&, const ShimTick&) { return {}; }

}  // namespace

std::vector<ShimAction> step(ShimState& state, std::int64_t now_ns, const ShimEvent& event) {
  Actions actions = std::visit([&](const auto& one) { return on(state, one); }, event);
  const Actions by_clock = due(state, now_ns);
  actions.insert(actions.end(), by_clock.begin(), by_clock.end());
  const Actions released = release(state);
  actions.insert(actions.end(), released.begin(), released.end());
  return actions;
}

std::optional<std::int64_t> next_tick_ns(const ShimState& state) {
  if (state.phase == ShimPhase::Terminating) {
    return state.kill_at_ns;
  }
  if (!ending(state) && state.wanted) {
    return state.wanted->lease_end_ns;
  }
  return std::nullopt;
}

}  // namespace bmgpu::agent_core
