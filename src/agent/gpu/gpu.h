// What an agent knows of its GPUs. Plain values, no NVML types: nothing above this folder sees the
// driver's interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bmgpu::agent {

// One measured quantity. Absent (this part or driver has no such sensor), failed (it has one that
// could not be read now) and zero are three different things; how old a value is stands beside it
// in GpuTelemetry.
template <typename T>
class Reading {
 public:
  static Reading absent() { return Reading(State::Absent, T{}); }
  static Reading failed() { return Reading(State::Failed, T{}); }
  static Reading of(T value) { return Reading(State::Present, std::move(value)); }
  Reading() = default;  // absent

  bool is_absent() const { return state_ == State::Absent; }
  bool is_failed() const { return state_ == State::Failed; }
  std::optional<T> value() const {
    return state_ == State::Present ? std::optional<T>(value_) : std::nullopt;
  }
  bool operator==(const Reading&) const = default;

 private:
  enum class State : std::uint8_t { Absent, Failed, Present };
  Reading(State state, T value) : state_(state), value_(std::move(value)) {}
  State state_ = State::Absent;
  T value_{};
};

enum class GpuForm : std::uint8_t { Unknown, Pcie, Sxm };

// Identity is UUID + PCI address + serial. `minor` is the N of /dev/nvidiaN; it can change with a
// reset and is never a key.
struct GpuIdentity {
  std::string uuid;        // "GPU-xxxxxxxx-…"
  std::string pci_bus_id;  // "00000000:17:00.0"
  std::string serial;      // empty: the part has none (consumer cards)
  std::string model;       // as NVML names it: "NVIDIA A100 80GB PCIe"
  GpuForm form = GpuForm::Unknown;
  std::int64_t memory_mib = 0;
  std::int32_t minor = 0;
  bool operator==(const GpuIdentity&) const = default;
};

struct GpuTelemetry {
  // CLOCK_BOOTTIME when these values were read; 0 = never. A value older than the caller's patience
  // is stale, whatever it says.
  std::int64_t taken_boottime_ms = 0;
  Reading<std::int32_t> temperature_c;
  Reading<std::int32_t> slowdown_c;  // the part's own slowdown threshold
  Reading<std::int64_t> power_mw;
  Reading<std::int64_t> power_limit_mw;
  Reading<std::int64_t> energy_mj;  // since the driver was loaded
  Reading<std::int64_t> memory_total_mib;
  Reading<std::int64_t> memory_used_mib;  // the driver's own reserve not counted where it tells
  Reading<std::int32_t> utilization_percent;
  Reading<std::int32_t> sm_clock_mhz;
  Reading<std::int64_t> ecc_uncorrected;
  Reading<std::int32_t> rows_remapped_uncorrected;
  Reading<bool> row_remap_pending;
  Reading<bool> row_remap_failed;
  // Processes that compute on it. Failed where the driver's answer cannot be trusted: an unknown
  // tenant is never shown as none.
  Reading<std::int32_t> processes;
  bool operator==(const GpuTelemetry&) const = default;
};

// What makes a GPU unfit to be offered. A fault is a health reading, never an outage of the agent.
enum class GpuFault : std::uint8_t {
  None,
  Lost,           // fallen off the bus, or no longer enumerated
  ResetRequired,  // the driver wants a reset
  Hung,           // a call to the driver did not come back in time
  Denied,         // no permission, or blocked by a cgroup
  Memory,         // row remapping failed or is pending, uncorrected errors since start
  Hot,            // at or above its slowdown threshold
  Xid,            // the driver reported a fatal error (HealthPart "events" names it)
  Partitioned,    // MIG mode is on: it is not a whole GPU
  Unknown,        // the driver answered with an error that no rule covers
};
// "lost", "reset required", "hung", … ; "" for None. The words of GpuCondition.fault.
const char* fault_word(GpuFault fault);

// One named part of the score. A gate that is not passed makes the whole score 0: gates veto, they
// are never averaged away.
struct HealthPart {
  std::string name;  // device, memory, temperature, events
  int score = 100;   // 0..100
  bool gate = false;
  std::string detail;
  bool operator==(const HealthPart&) const = default;
};

struct GpuState {
  GpuIdentity identity;
  GpuFault fault = GpuFault::None;
  std::string detail;  // one sentence for people; empty without a fault
  GpuTelemetry telemetry;
  int health = 0;  // 0..100: 0 if a gate fails, else the lowest part
  std::vector<HealthPart> parts;
  bool operator==(const GpuState&) const = default;
};

enum class DriverState : std::uint8_t {
  Starting,  // not asked yet
  Ready,
  NoLibrary,        // libnvidia-ml.so.1 (or the configured library) cannot be loaded
  NotLoaded,        // the library is there, the kernel module is not
  VersionMismatch,  // library and kernel module are of different versions: reboot needed
  Denied,           // no permission on the device files
  Hung,             // the driver does not answer at all
  Failed,           // anything else; GpuView::detail says what
};
const char* driver_word(DriverState state);

// The node's GPUs as last seen, ordered by PCI address. A GPU that was seen once stays here (with a
// fault) until the probe is restarted.
struct GpuView {
  std::uint64_t generation = 0;  // grows with every change of anything but telemetry and health
  DriverState driver = DriverState::Starting;
  std::string detail;  // one sentence if the driver is not Ready or counts GPUs that it cannot name
  std::string driver_version;
  bool simulated = false;
  std::vector<GpuState> gpus;
};

enum class GpuEventKind : std::uint8_t { Xid, EccCorrected, EccUncorrected, Other };
struct GpuEvent {
  std::string uuid;
  GpuEventKind kind = GpuEventKind::Other;
  std::uint64_t data = 0;  // the XID for Xid; without meaning for the others
  std::int64_t boottime_ms = 0;
  bool operator==(const GpuEvent&) const = default;
};

}  // namespace bmgpu::agent
