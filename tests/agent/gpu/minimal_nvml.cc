// The least that NvmlLibrary accepts, under the oldest names: one GPU that tells its UUID and
// minor.
#include <cstring>

#include "agent/gpu/nvml_abi.h"

using bmgpu::agent::nvml::Device;
using bmgpu::agent::nvml::kSuccess;
using bmgpu::agent::nvml::Return;

static char gpu;

extern "C" {
Return nvmlInit() { return kSuccess; }
Return nvmlShutdown() { return kSuccess; }
Return nvmlDeviceGetCount(std::uint32_t* count) {
  *count = 1;
  return kSuccess;
}
Return nvmlDeviceGetHandleByIndex(std::uint32_t, Device* device) {
  *device = &gpu;
  return kSuccess;
}
Return nvmlDeviceGetUUID(Device, char* uuid, std::uint32_t bytes) {
  std::strncpy(uuid, "GPU-old", bytes);
  return kSuccess;
}
Return nvmlDeviceGetMinorNumber(Device, std::uint32_t* minor) {
  *minor = 7;
  return kSuccess;
}
}
