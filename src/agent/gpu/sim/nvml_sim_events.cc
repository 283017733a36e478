// libnvml-sim.so: event sets. An XID that is appended to a GPU's list in the profile is delivered
// once to each set that registered for it before.
#include <time.h>

#include "agent/gpu/sim/sim_state.h"

namespace bmgpu::agent::sim {

using nvml::Device;
using nvml::EventSet;
using nvml::Return;
using Profile = std::shared_ptr<const SimProfile>;

namespace {

constexpr std::uint64_t kSupported =
    nvml::kEventSingleBitEcc | nvml::kEventDoubleBitEcc | nvml::kEventXid;
constexpr std::int64_t kLookEveryMs = 10;

}  // namespace

BMGPU_NVML_EXPORT Return nvmlEventSetCreate(EventSet* set) {
  Profile profile;
  const Return code = enter(__func__, profile);
  if (code == nvml::kSuccess) {
    *set = state().create_set();
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetSupportedEventTypes(Device device, std::uint64_t* types) {
  Profile profile;
  std::size_t index = 0;
  const Return code = enter_device(__func__, device, profile, index);
  if (code == nvml::kSuccess) {
    *types = kSupported;
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceRegisterEvents(Device device, std::uint64_t types,
                                                  EventSet set) {
  Profile profile;
  std::size_t index = 0;
  if (const Return code = enter_device(__func__, device, profile, index); code != nvml::kSuccess) {
    return code;
  }
  if ((types & ~kSupported) != 0) {
    return nvml::kNotSupported;  // one unsupported bit fails the whole call, as in the real one
  }
  return state().register_events(set, index, types) ? nvml::kSuccess : nvml::kInvalidArgument;
}

BMGPU_NVML_EXPORT Return nvmlEventSetWait_v2(EventSet set, nvml::EventData* data,
                                             std::uint32_t timeout_ms) {
  Profile profile;
  for (std::int64_t waited_ms = 0;; waited_ms += kLookEveryMs) {
    if (const Return code = enter(__func__, profile); code != nvml::kSuccess) {
      return code;
    }
    if (!state().knows_set(set)) {
      return nvml::kInvalidArgument;
    }
    if (profile->events_failing) {
      return nvml::kGpuIsLost;
    }
    std::size_t index = 0;
    std::uint64_t xid = 0;
    if (state().next_xid(set, index, xid)) {
      *data = nvml::EventData{device_at(index), nvml::kEventXid, xid, nvml::kAllOnes32,
                              nvml::kAllOnes32};
      return nvml::kSuccess;
    }
    if (waited_ms >= timeout_ms) {
      return nvml::kTimeout;
    }
    const timespec pause{0, kLookEveryMs * 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

BMGPU_NVML_EXPORT Return nvmlEventSetFree(EventSet set) {
  Profile profile;
  if (const Return code = enter(__func__, profile); code != nvml::kSuccess) {
    return code;
  }
  return state().free_set(set) ? nvml::kSuccess : nvml::kInvalidArgument;
}

}  // namespace bmgpu::agent::sim
