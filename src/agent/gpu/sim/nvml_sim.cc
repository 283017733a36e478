// libnvml-sim.so: lifecycle, enumeration and identity. Each function has the meaning of NVML's own
// of that name; docs/reference/nvml-sim.md says what a profile makes of it.
#include <array>
#include <cstdio>
#include <cstring>

#include "agent/gpu/sim/sim_state.h"

namespace bmgpu::agent::sim {

using nvml::Device;
using nvml::PciInfo;
using nvml::Return;
using Profile = std::shared_ptr<const SimProfile>;

namespace {

constexpr std::uint32_t kPciBusFirst = 0x17;
constexpr std::uint32_t kPciBusStep = 0x12;
constexpr std::uint32_t kPciVendor = 0x10DE;

std::uint32_t bus_of(std::size_t index) {
  return static_cast<std::uint32_t>(kPciBusFirst + kPciBusStep * (index % 12) + index / 12);
}

void fill_pci(std::size_t index, PciInfo& info) {
  info = PciInfo{};
  info.bus = bus_of(index);
  info.pci_device_id = kPciVendor;
  std::snprintf(info.bus_id, sizeof info.bus_id, "00000000:%02X:00.0", info.bus);
  std::snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "0000:%02X:00.0", info.bus);
}

}  // namespace

BMGPU_NVML_EXPORT int bmgpu_nvml_is_simulated() { return 1; }

BMGPU_NVML_EXPORT Return nvmlInit_v2() { return state().init(); }

BMGPU_NVML_EXPORT Return nvmlShutdown() { return state().shutdown(); }

BMGPU_NVML_EXPORT const char* nvmlErrorString(Return code) {
  static thread_local std::string text;
  text = state().explain();
  if (text.empty()) {
    text = "simulated error " + std::to_string(code);
  }
  return text.c_str();
}

BMGPU_NVML_EXPORT Return nvmlSystemGetDriverVersion(char* version, std::uint32_t bytes) {
  Profile profile;
  const Return code = enter(__func__, profile);
  return code != nvml::kSuccess ? code
                                : put_text(profile->driver_version + "-simulated", version, bytes);
}

BMGPU_NVML_EXPORT Return nvmlSystemGetNVMLVersion(char* version, std::uint32_t bytes) {
  Profile profile;
  const Return code = enter(__func__, profile);
  return code != nvml::kSuccess ? code : put_text(profile->library_version, version, bytes);
}

BMGPU_NVML_EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  Profile profile;
  const Return code = enter(__func__, profile);
  if (code == nvml::kSuccess) {
    *version = static_cast<int>(profile->cuda_version);
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetCount_v2(std::uint32_t* count) {
  Profile profile;
  const Return code = enter(__func__, profile);
  if (code == nvml::kSuccess) {
    *count = static_cast<std::uint32_t>(profile->gpus.size());
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, Device* device) {
  Profile profile;
  if (const Return code = enter(__func__, profile); code != nvml::kSuccess) {
    return code;
  }
  if (index >= profile->gpus.size()) {
    return nvml::kInvalidArgument;
  }
  if (profile->gpus[index].fault == SimFault::Gone) {
    return nvml::kNotFound;
  }
  *device = device_at(index);
  return nvml::kSuccess;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  Profile profile;
  if (const Return code = enter(__func__, profile); code != nvml::kSuccess) {
    return code;
  }
  for (std::size_t i = 0; i < profile->gpus.size(); ++i) {
    if (profile->gpus[i].fault != SimFault::Gone && sim_uuid(*profile, i) == uuid) {
      *device = device_at(i);
      return nvml::kSuccess;
    }
  }
  return nvml::kNotFound;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  Profile profile;
  if (const Return code = enter(__func__, profile); code != nvml::kSuccess) {
    return code;
  }
  for (std::size_t i = 0; i < profile->gpus.size(); ++i) {
    PciInfo info;
    fill_pci(i, info);
    if (profile->gpus[i].fault != SimFault::Gone && std::strcmp(info.bus_id, bus_id) == 0) {
      *device = device_at(i);
      return nvml::kSuccess;
    }
  }
  return nvml::kNotFound;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetIndex(Device device, std::uint32_t* index) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  if (code == nvml::kSuccess) {
    *index = static_cast<std::uint32_t>(at);
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetName(Device device, char* name, std::uint32_t bytes) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  return code != nvml::kSuccess ? code : put_text(profile->gpus[at].model, name, bytes);
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetUUID(Device device, char* uuid, std::uint32_t bytes) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  return code != nvml::kSuccess ? code : put_text(sim_uuid(*profile, at), uuid, bytes);
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetSerial(Device device, char* serial, std::uint32_t bytes) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  return code != nvml::kSuccess ? code : put_text(sim_serial(*profile, at), serial, bytes);
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetMinorNumber(Device device, std::uint32_t* minor) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  if (code == nvml::kSuccess) {
    *minor = static_cast<std::uint32_t>(sim_minor(*profile, at));
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  if (code == nvml::kSuccess) {
    fill_pci(at, *info);
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetPciInfo_v2(Device device, PciInfo* info) {
  Profile profile;
  std::size_t at = 0;
  const Return code = enter_device(__func__, device, profile, at);
  if (code == nvml::kSuccess) {
    constexpr std::size_t kBytesV2 = 52;  // the last 16 of them reserved
    PciInfo newer;
    fill_pci(at, newer);
    std::array<unsigned char, kBytesV2> older{};
    std::memcpy(older.data(), &newer, offsetof(PciInfo, bus_id));
    std::memcpy(static_cast<void*>(info), older.data(), older.size());
  }
  return code;
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetTopologyCommonAncestor(Device a, Device b,
                                                             std::uint32_t* level) {
  Profile profile;
  std::size_t first = 0;
  std::size_t second = 0;
  Return code = enter_device(__func__, a, profile, first);
  if (code == nvml::kSuccess) {
    code = enter_device(__func__, b, profile, second);
  }
  if (code == nvml::kSuccess) {
    // Two GPUs share a switch, four a host bridge; the other half hangs off the other processor.
    *level = first / 2 == second / 2   ? nvml::kTopologySingleSwitch
             : first / 4 == second / 4 ? nvml::kTopologyHostBridge
                                       : nvml::kTopologySystem;
  }
  return code;
}

}  // namespace bmgpu::agent::sim
