// Every NVML function that we use, by its explicit versioned symbol: the plain name of most of them
// is an older interface with another layout.
//
// BMGPU_NVML_FUNCTIONS(X) expands X(member, "symbol", signature) in a fixed order. A member whose
// newer symbol is missing may have an older one under a member of its own with the suffix of its
// layout; callers try them newest first.
#pragma once

#include "agent/gpu/nvml_abi.h"

// clang-format off
#define BMGPU_NVML_FUNCTIONS(X)                                                                    \
  X(init, "nvmlInit_v2", Return())                                                                 \
  X(shutdown, "nvmlShutdown", Return())                                                            \
  X(count, "nvmlDeviceGetCount_v2", Return(std::uint32_t*))                                        \
  X(handle_by_index, "nvmlDeviceGetHandleByIndex_v2", Return(std::uint32_t, Device*))              \
  X(handle_by_uuid, "nvmlDeviceGetHandleByUUID", Return(const char*, Device*))                     \
  X(handle_by_pci, "nvmlDeviceGetHandleByPciBusId_v2", Return(const char*, Device*))               \
  X(error_string, "nvmlErrorString", const char*(Return))                                          \
  X(driver_version, "nvmlSystemGetDriverVersion", Return(char*, std::uint32_t))                    \
  X(library_version, "nvmlSystemGetNVMLVersion", Return(char*, std::uint32_t))                     \
  X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", Return(int*))                               \
  X(index, "nvmlDeviceGetIndex", Return(Device, std::uint32_t*))                                   \
  X(name, "nvmlDeviceGetName", Return(Device, char*, std::uint32_t))                               \
  X(uuid, "nvmlDeviceGetUUID", Return(Device, char*, std::uint32_t))                               \
  X(serial, "nvmlDeviceGetSerial", Return(Device, char*, std::uint32_t))                           \
  X(minor, "nvmlDeviceGetMinorNumber", Return(Device, std::uint32_t*))                             \
  X(pci_v3, "nvmlDeviceGetPciInfo_v3", Return(Device, PciInfo*))                                   \
  X(pci_v2, "nvmlDeviceGetPciInfo_v2", Return(Device, PciInfo*))                                   \
  X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", Return(Device, MemoryV2*))                            \
  X(memory_v1, "nvmlDeviceGetMemoryInfo", Return(Device, MemoryV1*))                               \
  X(utilization, "nvmlDeviceGetUtilizationRates", Return(Device, Utilization*))                    \
  X(temperature_v, "nvmlDeviceGetTemperatureV", Return(Device, Temperature*))                      \
  X(temperature, "nvmlDeviceGetTemperature", Return(Device, std::uint32_t, std::uint32_t*))        \
  X(threshold, "nvmlDeviceGetTemperatureThreshold",                                                \
    Return(Device, std::uint32_t, std::uint32_t*))                                                 \
  X(power, "nvmlDeviceGetPowerUsage", Return(Device, std::uint32_t*))                              \
  X(energy, "nvmlDeviceGetTotalEnergyConsumption", Return(Device, std::uint64_t*))                 \
  X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", Return(Device, std::uint32_t*))                \
  X(power_limits, "nvmlDeviceGetPowerManagementLimitConstraints",                                  \
    Return(Device, std::uint32_t*, std::uint32_t*))                                                \
  X(clock, "nvmlDeviceGetClockInfo", Return(Device, std::uint32_t, std::uint32_t*))                \
  X(clock_max, "nvmlDeviceGetMaxClockInfo", Return(Device, std::uint32_t, std::uint32_t*))         \
  X(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons", Return(Device, std::uint64_t*))       \
  X(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                                 \
    Return(Device, std::uint64_t*))                                                                \
  X(ecc_total, "nvmlDeviceGetTotalEccErrors",                                                      \
    Return(Device, std::uint32_t, std::uint32_t, std::uint64_t*))                                  \
  X(remapped_rows, "nvmlDeviceGetRemappedRows",                                                    \
    Return(Device, std::uint32_t*, std::uint32_t*, std::uint32_t*, std::uint32_t*))                \
  X(processes_v3, "nvmlDeviceGetComputeRunningProcesses_v3",                                       \
    Return(Device, std::uint32_t*, void*))                                                         \
  X(processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2",                                       \
    Return(Device, std::uint32_t*, void*))                                                         \
  X(mig_mode, "nvmlDeviceGetMigMode", Return(Device, std::uint32_t*, std::uint32_t*))              \
  X(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor",                                        \
    Return(Device, Device, std::uint32_t*))                                                        \
  X(event_set_create, "nvmlEventSetCreate", Return(EventSet*))                                     \
  X(event_types, "nvmlDeviceGetSupportedEventTypes", Return(Device, std::uint64_t*))               \
  X(event_register, "nvmlDeviceRegisterEvents", Return(Device, std::uint64_t, EventSet))           \
  X(event_wait, "nvmlEventSetWait_v2", Return(EventSet, EventData*, std::uint32_t))                \
  X(event_set_free, "nvmlEventSetFree", Return(EventSet))
// clang-format on

namespace bmgpu::agent::nvml {

// Null: the loaded library has no such symbol.
struct Table {
#define BMGPU_NVML_MEMBER(member, symbol, ...) \
  using member##_function = __VA_ARGS__;       \
  member##_function* member = nullptr;
  BMGPU_NVML_FUNCTIONS(BMGPU_NVML_MEMBER)
#undef BMGPU_NVML_MEMBER
};

}  // namespace bmgpu::agent::nvml
