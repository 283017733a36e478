// The part of NVIDIA's NVML binary interface that this product uses: names, numbers and layouts for
// x86-64 Linux, written from interface facts. Every size and offset is asserted below.
//
// Only src/agent/gpu may include this. The same declarations serve the reader (NvmlLibrary) and the
// simulated library (sim/), so that the two can never drift apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bmgpu::agent::nvml {

using Return = int;
using Device = void*;
using EventSet = void*;

// Return codes.
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kVersionMismatch = 18;  // library and kernel module
inline constexpr Return kInUse = 19;
inline constexpr Return kArgumentVersionMismatch = 25;  // a struct's version field
inline constexpr Return kUnknown = 999;

// A versioned struct starts with its size and version number in one word.
template <typename Struct>
constexpr std::uint32_t struct_version(std::uint32_t number) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | (number << 24);
}

// "Not applicable" of ids, and what a driver answers where it does not know.
inline constexpr std::uint32_t kAllOnes32 = 0xFFFFFFFFu;
inline constexpr std::uint64_t kAllOnes64 = 0xFFFFFFFFFFFFFFFFull;

// Buffer sizes that every version of the interface accepts.
inline constexpr std::uint32_t kUuidBytes = 96;
inline constexpr std::uint32_t kNameBytes = 96;
inline constexpr std::uint32_t kSerialBytes = 30;
inline constexpr std::uint32_t kVersionBytes = 80;

// Selectors.
inline constexpr std::uint32_t kSensorGpu = 0;
inline constexpr std::uint32_t kThresholdShutdown = 0;
inline constexpr std::uint32_t kThresholdSlowdown = 1;
inline constexpr std::uint32_t kClockGraphics = 0;
inline constexpr std::uint32_t kClockSm = 1;
inline constexpr std::uint32_t kClockMemory = 2;
inline constexpr std::uint32_t kErrorCorrected = 0;
inline constexpr std::uint32_t kErrorUncorrected = 1;
inline constexpr std::uint32_t kCounterVolatile = 0;
inline constexpr std::uint32_t kCounterAggregate = 1;

// Event types, bits of one word.
inline constexpr std::uint64_t kEventSingleBitEcc = 0x1;
inline constexpr std::uint64_t kEventDoubleBitEcc = 0x2;
inline constexpr std::uint64_t kEventXid = 0x8;
inline constexpr std::uint64_t kEventClock = 0x10;

// Levels of the nearest common ancestor of two GPUs.
inline constexpr std::uint32_t kTopologySingleSwitch = 10;
inline constexpr std::uint32_t kTopologyHostBridge = 30;
inline constexpr std::uint32_t kTopologySystem = 50;

struct PciInfo {  // v3; v2 is the first 52 bytes with 16 reserved ones at the end
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16);
static_assert(offsetof(PciInfo, bus) == 20 && offsetof(PciInfo, device) == 24);
static_assert(offsetof(PciInfo, pci_device_id) == 28 && offsetof(PciInfo, bus_id) == 36);

struct MemoryV1 {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;  // the driver's own reserve included
};
static_assert(sizeof(MemoryV1) == 24 && offsetof(MemoryV1, used) == 16);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
static_assert(offsetof(MemoryV2, reserved) == 16 && offsetof(MemoryV2, used) == 32);
static_assert(struct_version<MemoryV2>(2) == 0x02000028);

struct Utilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};
static_assert(sizeof(Utilization) == 8);

struct Temperature {  // v1
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
static_assert(sizeof(Temperature) == 12 && struct_version<Temperature>(1) == 0x0100000C);

struct ProcessV1 {
  std::uint32_t pid;
  std::uint64_t used_memory;
};
static_assert(sizeof(ProcessV1) == 16 && offsetof(ProcessV1, used_memory) == 8);

struct ProcessV2 {  // also the layout of most drivers behind the _v3 name
  std::uint32_t pid;
  std::uint64_t used_memory;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(ProcessV2) == 24 && offsetof(ProcessV2, gpu_instance) == 16);
static_assert(offsetof(ProcessV2, compute_instance) == 20);

struct ProcessV3 {  // written by early R535 drivers behind the same _v3 name
  std::uint32_t pid;
  std::uint64_t used_memory;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
  std::uint64_t protected_memory;
};
static_assert(sizeof(ProcessV3) == 32 && offsetof(ProcessV3, protected_memory) == 24);

struct EventData {
  Device device;
  std::uint64_t type;
  std::uint64_t data;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, type) == 8);
static_assert(offsetof(EventData, data) == 16 && offsetof(EventData, gpu_instance) == 24);

}  // namespace bmgpu::agent::nvml
