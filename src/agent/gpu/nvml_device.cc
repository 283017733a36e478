#include "agent/gpu/nvml_device.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "agent/gpu/nvml_processes.h"
#include "agent/host/facts.h"

namespace bmgpu::agent {
namespace {

using nvml::Device;
using nvml::Table;

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr std::int64_t kPowerMwMax = 10'000'000;
constexpr std::int64_t kTemperatureMax = 200;
constexpr std::int64_t kClockMax = 100'000;
constexpr std::uint64_t kMemoryMibMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kCounterMax = std::uint64_t{1} << 62;

// Remembers what the first call that concerned the device as a whole said.
class Verdict {
 public:
  NvmlStatus note(NvmlStatus status) {
    if (!concerns_device(status_) && (concerns_device(status) || status == NvmlStatus::Unknown)) {
      status_ = status;
    }
    return status;
  }
  NvmlStatus status() const { return status_; }
  bool device_answers() const { return !concerns_device(status_); }

 private:
  NvmlStatus status_ = NvmlStatus::Ok;
};

// A reading of one quantity. Numbers beyond `max` are what drivers answer where they do not know.
template <typename Out, typename In>
Reading<Out> reading(NvmlStatus status, In value, std::uint64_t max) {
  if (status == NvmlStatus::Absent) {
    return Reading<Out>::absent();
  }
  if (status != NvmlStatus::Ok || static_cast<std::uint64_t>(value) > max) {
    return Reading<Out>::failed();
  }
  return Reading<Out>::of(static_cast<Out>(value));
}

template <std::size_t Bytes>
std::string text(const std::array<char, Bytes>& buffer) {
  return std::string(buffer.data(), strnlen(buffer.data(), buffer.size()));
}

void read_memory(const Table& api, Device device, Verdict& verdict, GpuTelemetry& out) {
  nvml::MemoryV2 memory{};
  memory.version = nvml::struct_version<nvml::MemoryV2>(2);
  NvmlStatus status = verdict.note(call(api.memory_v2, device, &memory));
  if (status == NvmlStatus::Absent || status == NvmlStatus::StructVersion) {
    nvml::MemoryV1 older{};
    status = verdict.note(call(api.memory_v1, device, &older));
    memory.total = older.total;
    memory.used = older.used;
  }
  out.memory_total_mib = reading<std::int64_t>(status, memory.total / kMib, kMemoryMibMax);
  out.memory_used_mib = reading<std::int64_t>(status, memory.used / kMib, memory.total / kMib);
  if (out.memory_total_mib.is_failed()) {
    out.memory_used_mib = Reading<std::int64_t>::failed();
  }
}

void read_temperature(const Table& api, Device device, Verdict& verdict, GpuTelemetry& out) {
  nvml::Temperature newer{nvml::struct_version<nvml::Temperature>(1), nvml::kSensorGpu, 0};
  NvmlStatus status = verdict.note(call(api.temperature_v, device, &newer));
  std::uint32_t celsius = static_cast<std::uint32_t>(newer.celsius);
  if (status == NvmlStatus::Absent || status == NvmlStatus::StructVersion) {
    status = verdict.note(call(api.temperature, device, nvml::kSensorGpu, &celsius));
  }
  out.temperature_c = reading<std::int32_t>(status, celsius, kTemperatureMax);
  std::uint32_t slowdown = 0;
  status = verdict.note(call(api.threshold, device, nvml::kThresholdSlowdown, &slowdown));
  out.slowdown_c = reading<std::int32_t>(status, slowdown, kTemperatureMax);
}

void read_power(const Table& api, Device device, Verdict& verdict, GpuTelemetry& out) {
  std::uint32_t milliwatts = 0;
  NvmlStatus status = verdict.note(call(api.power, device, &milliwatts));
  out.power_mw = reading<std::int64_t>(status, milliwatts, kPowerMwMax);
  status = verdict.note(call(api.power_limit, device, &milliwatts));
  out.power_limit_mw = reading<std::int64_t>(status, milliwatts, kPowerMwMax);
  std::uint64_t millijoules = 0;
  status = verdict.note(call(api.energy, device, &millijoules));
  out.energy_mj = reading<std::int64_t>(status, millijoules, kCounterMax);
}

void read_load(const Table& api, Device device, Verdict& verdict, GpuTelemetry& out) {
  nvml::Utilization rates{};
  NvmlStatus status = verdict.note(call(api.utilization, device, &rates));
  out.utilization_percent = reading<std::int32_t>(status, rates.gpu, 100);
  std::uint32_t mhz = 0;
  status = verdict.note(call(api.clock, device, nvml::kClockSm, &mhz));
  out.sm_clock_mhz = reading<std::int32_t>(status, mhz, kClockMax);
}

void read_errors(const Table& api, Device device, Verdict& verdict, GpuTelemetry& out) {
  std::uint64_t count = 0;
  NvmlStatus status = verdict.note(
      call(api.ecc_total, device, nvml::kErrorUncorrected, nvml::kCounterVolatile, &count));
  out.ecc_uncorrected = reading<std::int64_t>(status, count, kCounterMax);
  std::uint32_t corrected = 0;
  std::uint32_t uncorrected = 0;
  std::uint32_t pending = 0;
  std::uint32_t failed = 0;
  status =
      verdict.note(call(api.remapped_rows, device, &corrected, &uncorrected, &pending, &failed));
  out.rows_remapped_uncorrected = reading<std::int32_t>(status, uncorrected, 1u << 30);
  out.row_remap_pending = reading<bool>(status, pending, 1);
  out.row_remap_failed = reading<bool>(status, failed, 1);
}

bool process_lives(std::uint32_t pid) {
  return pid != 0 && pid < (1u << 22) && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

void read_processes(const Table& api, Device device, Verdict& verdict, GpuTelemetry& out) {
  // The list may grow between two calls: ask with room to spare, again with more.
  constexpr int kTries = 3;
  std::uint32_t room = 64;
  for (int i = 0; i < kTries; ++i) {
    std::vector<unsigned char> buffer(room * kProcessStrideMax, kProcessPoison);
    std::uint32_t count = room;
    NvmlStatus status = call(api.processes_v3, device, &count, static_cast<void*>(buffer.data()));
    if (status == NvmlStatus::Absent) {
      count = room;
      status = call(api.processes_v2, device, &count, static_cast<void*>(buffer.data()));
    }
    verdict.note(status);
    if (status == NvmlStatus::TooSmall && count < 4096) {
      room = count + 16;
      continue;
    }
    if (status == NvmlStatus::Absent) {
      return;
    }
    out.processes = Reading<std::int32_t>::failed();
    if (status == NvmlStatus::Ok && count <= room) {
      if (const auto pids = parse_processes(buffer, count, process_lives)) {
        out.processes = Reading<std::int32_t>::of(static_cast<std::int32_t>(pids->size()));
      }
    }
    return;
  }
  out.processes = Reading<std::int32_t>::failed();
}

}  // namespace

DriverState driver_state(NvmlStatus status) {
  switch (status) {
    case NvmlStatus::Ok:
      return DriverState::Ready;
    case NvmlStatus::NotLoaded:
      return DriverState::NotLoaded;
    case NvmlStatus::VersionMismatch:
      return DriverState::VersionMismatch;
    case NvmlStatus::Denied:
    case NvmlStatus::Blocked:
      return DriverState::Denied;
    default:
      return DriverState::Failed;
  }
}

GpuFault gpu_fault(NvmlStatus status) {
  switch (status) {
    case NvmlStatus::Lost:
    case NvmlStatus::NotFound:
    case NvmlStatus::NotLoaded:
      return GpuFault::Lost;
    case NvmlStatus::ResetRequired:
      return GpuFault::ResetRequired;
    case NvmlStatus::Denied:
    case NvmlStatus::Blocked:
      return GpuFault::Denied;
    case NvmlStatus::VersionMismatch:
    case NvmlStatus::Unknown:
      return GpuFault::Unknown;
    default:
      return GpuFault::None;
  }
}

GpuForm form_of(const std::string& model) {
  const auto has = [&model](const char* word) { return model.find(word) != std::string::npos; };
  if (has("PCIe") || has("PCIE") || has(" NVL")) {
    return GpuForm::Pcie;
  }
  if (has("SXM") || has("HGX")) {
    return GpuForm::Sxm;
  }
  for (const char* word : {"NVIDIA H200", "NVIDIA B200", "NVIDIA B300"}) {
    if (model == word) {
      return GpuForm::Sxm;
    }
  }
  for (const char* word : {"GeForce", "RTX", "Quadro", "NVIDIA A40", "NVIDIA A10", "NVIDIA A16",
                           "NVIDIA A2", "NVIDIA L40", "NVIDIA L4", "Tesla T4", "Tesla P4"}) {
    if (has(word) && !has("A100")) {
      return GpuForm::Pcie;
    }
  }
  return GpuForm::Unknown;
}

NvmlSession::Opened NvmlSession::open() {
  const Table& api = library_.api();
  Opened opened;
  const nvml::Return code = api.init();
  opened.status = nvml_status(code);
  if (opened.status != NvmlStatus::Ok) {
    const char* words = api.error_string == nullptr ? nullptr : api.error_string(code);
    opened.detail = words == nullptr ? "" : words;
    return opened;
  }
  std::array<char, nvml::kVersionBytes> version{};
  if (call(api.driver_version, version.data(), nvml::kVersionBytes) == NvmlStatus::Ok) {
    opened.driver_version = text(version);
  }
  opened.status = count(opened.count);
  return opened;
}

NvmlStatus NvmlSession::count(std::uint32_t& count) {
  count = 0;
  return call(library_.api().count, &count);
}

NvmlStatus NvmlSession::identify(std::uint32_t index, GpuIdentity& identity) {
  const Table& api = library_.api();
  Device device = nullptr;
  if (const NvmlStatus status = call(api.handle_by_index, index, &device);
      status != NvmlStatus::Ok) {
    return status;
  }
  std::array<char, nvml::kUuidBytes> uuid{};
  if (const NvmlStatus status = call(api.uuid, device, uuid.data(), nvml::kUuidBytes);
      status != NvmlStatus::Ok) {
    return status;
  }
  identity.uuid = text(uuid);
  std::array<char, nvml::kNameBytes> name{};
  if (call(api.name, device, name.data(), nvml::kNameBytes) == NvmlStatus::Ok) {
    identity.model = text(name);
  }
  std::array<char, nvml::kSerialBytes> serial{};
  if (call(api.serial, device, serial.data(), nvml::kSerialBytes) == NvmlStatus::Ok) {
    identity.serial = text(serial);
  }
  nvml::PciInfo pci{};
  NvmlStatus status = call(api.pci_v3, device, &pci);
  if (status == NvmlStatus::Absent) {
    status = call(api.pci_v2, device, &pci);
  }
  if (status == NvmlStatus::Ok) {
    std::array<char, 32> address{};
    std::snprintf(address.data(), address.size(), "%08X:%02X:%02X.0", pci.domain, pci.bus,
                  pci.device);
    identity.pci_bus_id = text(address);
  }
  std::uint32_t minor = 0;
  status = call(api.minor, device, &minor);
  if (status != NvmlStatus::Ok) {
    return status;  // without it no container can be given this GPU
  }
  identity.minor = static_cast<std::int32_t>(minor);
  identity.form = form_of(identity.model);
  GpuTelemetry telemetry;
  Verdict verdict;
  read_memory(api, device, verdict, telemetry);
  identity.memory_mib = telemetry.memory_total_mib.value().value_or(0);
  handles_[identity.uuid] = device;
  return verdict.status();
}

NvmlStatus NvmlSession::handle(const std::string& uuid, Device& device) {
  if (const auto known = handles_.find(uuid); known != handles_.end()) {
    device = known->second;
    return NvmlStatus::Ok;
  }
  const NvmlStatus status = call(library_.api().handle_by_uuid, uuid.c_str(), &device);
  if (status == NvmlStatus::Ok) {
    handles_[uuid] = device;
  }
  return status;
}

NvmlStatus NvmlSession::sample(const std::string& uuid, GpuTelemetry& telemetry,
                               bool& partitioned) {
  const Table& api = library_.api();
  Device device = nullptr;
  if (const NvmlStatus status = handle(uuid, device); status != NvmlStatus::Ok) {
    return status;
  }
  Verdict verdict;
  using Reader = void (*)(const Table&, Device, Verdict&, GpuTelemetry&);
  for (const Reader read : {Reader(read_memory), Reader(read_temperature), Reader(read_power),
                            Reader(read_load), Reader(read_errors), Reader(read_processes)}) {
    if (verdict.device_answers()) {
      read(api, device, verdict, telemetry);
    }
  }
  telemetry.taken_boottime_ms = boottime_ms();
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  partitioned = verdict.device_answers() &&
                verdict.note(call(api.mig_mode, device, &current, &pending)) == NvmlStatus::Ok &&
                current == 1;
  if (verdict.status() != NvmlStatus::Ok) {
    handles_.erase(uuid);  // a handle may not outlive a loss or a reset
  }
  return verdict.status();
}

NvmlStatus NvmlSession::watch(const std::string& uuid) {
  const Table& api = library_.api();
  if (api.event_set_create == nullptr || api.event_types == nullptr ||
      api.event_register == nullptr || api.event_wait == nullptr) {
    return NvmlStatus::Absent;
  }
  if (events_ == nullptr) {
    if (const NvmlStatus status = call(api.event_set_create, &events_); status != NvmlStatus::Ok) {
      events_ = nullptr;
      return status;
    }
  }
  Device device = nullptr;
  if (const NvmlStatus status = handle(uuid, device); status != NvmlStatus::Ok) {
    return status;
  }
  std::uint64_t types = 0;
  if (const NvmlStatus status = call(api.event_types, device, &types); status != NvmlStatus::Ok) {
    return status;
  }
  types &= nvml::kEventXid | nvml::kEventSingleBitEcc | nvml::kEventDoubleBitEcc;
  {
    const std::lock_guard lock(watched_mutex_);
    watched_[device] = uuid;
  }
  return types == 0 ? NvmlStatus::Absent : call(api.event_register, device, types, events_);
}

NvmlStatus NvmlSession::wait_event(std::uint32_t timeout_ms, GpuEvent& event) {
  const Table& api = library_.api();
  if (events_ == nullptr) {
    return NvmlStatus::Absent;
  }
  nvml::EventData data{};
  if (const NvmlStatus status = call(api.event_wait, events_, &data, timeout_ms);
      status != NvmlStatus::Ok) {
    return status;
  }
  // The type decides what `data` means: a clock event's data is no XID.
  event.kind = data.type == nvml::kEventXid            ? GpuEventKind::Xid
               : data.type == nvml::kEventSingleBitEcc ? GpuEventKind::EccCorrected
               : data.type == nvml::kEventDoubleBitEcc ? GpuEventKind::EccUncorrected
                                                       : GpuEventKind::Other;
  event.data = event.kind == GpuEventKind::Xid ? data.data : 0;
  event.boottime_ms = boottime_ms();
  // Not asked of the driver: a GPU that was just lost no longer tells its name.
  const std::lock_guard lock(watched_mutex_);
  const auto found = watched_.find(data.device);
  event.uuid = found == watched_.end() ? "" : found->second;
  return NvmlStatus::Ok;
}

}  // namespace bmgpu::agent
