// The frames between GpuProbe and its worker process: plain structs, one a packet of a
// SOCK_SEQPACKET pair. Both ends are the same executable, so the layout needs no version.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "agent/gpu/gpu.h"
#include "agent/gpu/nvml_library.h"

namespace bmgpu::agent {

enum class WorkerOp : std::uint32_t {
  Open,      // load and initialise the library → status, text, count, flag = simulated
  Count,     // → status, count
  Identify,  // index → status, identity
  Sample,    // uuid → status, telemetry, flag = partitioned
  Watch,     // uuid → status
  Event,     // unasked, from the worker: uuid, event_kind, event_data, event_boottime_ms
};

// A text of a frame; longer ones are cut.
template <std::size_t Bytes>
struct WireText {
  std::array<char, Bytes> bytes{};
  void set(const std::string& text) {
    bytes.fill('\0');
    std::memcpy(bytes.data(), text.data(), std::min(text.size(), Bytes - 1));
  }
  std::string get() const { return std::string(bytes.data(), strnlen(bytes.data(), Bytes)); }
};

struct WorkerRequest {
  WorkerOp op = WorkerOp::Open;
  std::uint64_t serial = 0;  // echoed: an answer to an older question is dropped
  std::uint32_t index = 0;
  WireText<96> uuid;
};

struct WorkerFrame {
  WorkerOp op = WorkerOp::Open;
  std::uint64_t serial = 0;
  NvmlStatus status = NvmlStatus::Unknown;
  DriverState driver = DriverState::Failed;  // Open
  std::uint32_t count = 0;
  std::uint32_t flag = 0;
  WireText<256> detail;
  WireText<96> driver_version;
  WireText<96> uuid;
  WireText<32> pci_bus_id;
  WireText<32> serial_number;
  WireText<96> model;
  GpuForm form = GpuForm::Unknown;
  std::int64_t memory_mib = 0;
  std::int32_t minor = 0;
  GpuTelemetry telemetry;
  GpuEventKind event_kind = GpuEventKind::Other;
  std::uint64_t event_data = 0;
  std::int64_t event_boottime_ms = 0;
};
static_assert(std::is_trivially_copyable_v<WorkerRequest>);
static_assert(std::is_trivially_copyable_v<WorkerFrame>);

}  // namespace bmgpu::agent
