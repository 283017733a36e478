// What the probe does with its worker: open the driver, name the GPUs, sample each.
#include <algorithm>

#include "agent/gpu/nvml_device.h"
#include "agent/gpu/probe_loop.h"
#include "agent/host/facts.h"

namespace bmgpu::agent {
namespace {

constexpr std::uint32_t kGpusMax = 64;
constexpr std::size_t kCondemnedMax = 4;
constexpr std::int64_t kEnumerateEveryMs = 30'000;
// A worker can be killed by others (out of memory): one death blames no GPU.
constexpr int kDeathsMax = 2;
constexpr std::int64_t kSkipMsMax = 600'000;

GpuFault fault_of(DriverState state) {
  switch (state) {
    case DriverState::Hung:
      return GpuFault::Hung;
    case DriverState::Denied:
      return GpuFault::Denied;
    default:
      return GpuFault::Unknown;
  }
}

}  // namespace

bool GpuProbe::Loop::pass() {
  const std::int64_t now_ms = boottime_ms();
  const bool lost = std::any_of(known_.begin(), known_.end(), [](const auto& entry) {
    return entry.second.fault == GpuFault::Lost || entry.second.fault == GpuFault::ResetRequired;
  });
  if (worker_ && lost && now_ms - opened_ms_ >= options_.lost_retry.count()) {
    drop_worker();  // only a driver that is opened anew finds a GPU that came back
  }
  if (!ensure_worker()) {
    return driver_ != DriverState::Ready;
  }
  if (now_ms >= enumerate_at_ms_ && !enumerate()) {
    return false;
  }
  if (!sample_all()) {
    return false;
  }
  restart_delay_ = options_.restart_delay_min;
  return true;
}

bool GpuProbe::Loop::condemned_full() {
  std::erase_if(condemned_, [](CondemnedProcess& process) { return process.gone(0); });
  return condemned_.size() >= kCondemnedMax;
}

bool GpuProbe::Loop::ensure_worker() {
  const bool full = condemned_full();
  if (worker_) {
    return true;
  }
  if (boottime_ms() < restart_at_ms_) {
    return false;
  }
  if (full) {
    driver_failed(DriverState::Hung, "4 workers hang in the driver and cannot be killed: reboot");
    return false;
  }
  open_worker();
  return worker_ != nullptr;
}

void GpuProbe::Loop::open_worker() {
  Result<std::unique_ptr<WorkerProcess>> started =
      WorkerProcess::start(options_.worker_command, options_.library, options_.sim_profile);
  if (!started) {
    driver_failed(DriverState::Failed, started.error().message);
    return;
  }
  worker_ = std::move(*started);
  {
    const std::lock_guard lock(mutex_);
    ++counters_.workers_started;
  }
  for (auto& [uuid, gpu] : known_) {
    gpu.watched = false;
  }
  WorkerRequest request;
  request.op = WorkerOp::Open;
  WorkerFrame frame;
  switch (ask(request, options_.init_deadline, nullptr, frame)) {
    case Asked::Answered:
      break;
    case Asked::Late:
      driver_failed(DriverState::Hung, "the driver does not initialise in time");
      return;
    case Asked::Died:
      driver_failed(DriverState::Failed, "the worker process ended while it opened the driver");
      return;
    case Asked::Stopping:
      return;
  }
  if (frame.driver != DriverState::NoLibrary) {
    simulated_ = frame.flag != 0;
  }
  if (frame.driver != DriverState::Ready) {
    driver_failed(frame.driver, frame.detail.get());
    return;
  }
  driver_ = DriverState::Ready;
  driver_detail_.clear();
  driver_version_ = frame.driver_version.get();
  opened_ms_ = boottime_ms();
  enumerate_at_ms_ = 0;
}

void GpuProbe::Loop::driver_failed(DriverState state, const std::string& detail) {
  driver_ = state;
  driver_detail_ = detail;
  unidentified_.clear();
  for (auto& [uuid, gpu] : known_) {
    gpu.fault = fault_of(state);
    gpu.detail = detail;
  }
  drop_worker();
  if (boottime_ms() >= restart_at_ms_) {
    delay_restart();
  }
}

void GpuProbe::Loop::delay_restart() {
  restart_at_ms_ = boottime_ms() + restart_delay_.count();
  restart_delay_ = std::min(restart_delay_ * 2, options_.restart_delay_max);
}

void GpuProbe::Loop::drop_worker() {
  if (worker_) {
    condemned_.push_back(worker_->kill());
    worker_.reset();
  }
}

GpuProbe::Loop::Asked GpuProbe::Loop::ask(const WorkerRequest& request,
                                          std::chrono::milliseconds limit, Known* culprit,
                                          WorkerFrame& frame) {
  WorkerProcess::Answer answer = worker_->ask(
      request, boottime_ms() + limit.count(), wake_fd_, [this] { return stopping_.load(); },
      [this](const WorkerFrame& event) { note_event(event); });
  if (answer.outcome == WorkerProcess::Outcome::Answered) {
    frame = answer.frame;
    return Asked::Answered;
  }
  drop_worker();
  if (answer.outcome == WorkerProcess::Outcome::Interrupted) {
    return Asked::Stopping;
  }
  const bool late = answer.outcome == WorkerProcess::Outcome::Late;
  if (late) {
    const std::lock_guard lock(mutex_);
    ++counters_.workers_killed;
  }
  if (culprit != nullptr && (late || ++culprit->deaths >= kDeathsMax)) {
    skip(*culprit, late ? GpuFault::Hung : GpuFault::Unknown,
         late ? "the driver does not answer for it in time"
              : "the driver crashed while it was asked for it");
  }
  delay_restart();
  return late ? Asked::Late : Asked::Died;
}

void GpuProbe::Loop::skip(Known& gpu, GpuFault fault, const std::string& detail) {
  gpu.fault = fault;
  gpu.detail = detail;
  const std::int64_t wait_ms =
      std::min(options_.hung_retry.count() << std::min(gpu.times_skipped, 10), kSkipMsMax);
  ++gpu.times_skipped;
  gpu.skip_until_ms = boottime_ms() + wait_ms;
  if (gpu.index) {
    skip_index_[*gpu.index] = gpu.skip_until_ms;
  }
}

GpuProbe::Loop::Known* GpuProbe::Loop::known_at(std::uint32_t index) {
  for (auto& [uuid, gpu] : known_) {
    if (gpu.index == index) {
      return &gpu;
    }
  }
  return nullptr;
}

bool GpuProbe::Loop::enumerate() {
  WorkerRequest request;
  request.op = WorkerOp::Count;
  WorkerFrame frame;
  const Asked asked = ask(request, options_.call_deadline, nullptr, frame);
  if (asked == Asked::Late) {
    driver_failed(DriverState::Hung, "the driver does not count its GPUs in time");
  }
  if (asked != Asked::Answered) {
    return false;
  }
  unidentified_.clear();
  for (std::uint32_t index = 0; index < std::min(frame.count, kGpusMax); ++index) {
    if (!identify(index)) {
      return false;
    }
  }
  enumerate_at_ms_ = boottime_ms() + kEnumerateEveryMs;
  return true;
}

bool GpuProbe::Loop::identify(std::uint32_t index) {
  if (const auto skipped = skip_index_.find(index); skipped != skip_index_.end()) {
    if (boottime_ms() < skipped->second) {
      if (known_at(index) == nullptr) {
        unidentified_[index] = "the driver does not answer for it in time";
      }
      return true;
    }
    skip_index_.erase(skipped);
  }
  WorkerRequest request;
  request.op = WorkerOp::Identify;
  request.index = index;
  WorkerFrame frame;
  Known* const before = known_at(index);
  Known* const culprit = before != nullptr && before->watched ? before : nullptr;
  if (ask(request, options_.call_deadline, culprit, frame) != Asked::Answered) {
    skip_index_[index] = boottime_ms() + options_.hung_retry.count();
    return false;
  }
  if (frame.uuid.get().empty()) {
    if (before == nullptr) {
      unidentified_[index] = nvml_status_text(frame.status);
    }
    return true;
  }
  if (frame.status != NvmlStatus::Ok) {
    return true;  // named, but it does not answer: its sample tells what is wrong
  }
  Known& gpu = known_[frame.uuid.get()];
  gpu.identity = GpuIdentity{frame.uuid.get(),
                             frame.pci_bus_id.get(),
                             frame.serial_number.get(),
                             frame.model.get(),
                             frame.form,
                             frame.memory_mib,
                             frame.minor};
  gpu.index = index;
  return watch(gpu);
}

bool GpuProbe::Loop::watch(Known& gpu) {
  if (gpu.watched) {
    return true;
  }
  WorkerRequest request;
  request.op = WorkerOp::Watch;
  request.uuid.set(gpu.identity.uuid);
  WorkerFrame frame;
  if (ask(request, options_.call_deadline, &gpu, frame) != Asked::Answered) {
    return false;
  }
  gpu.watched = frame.status == NvmlStatus::Ok || frame.status == NvmlStatus::Absent;
  return true;
}

bool GpuProbe::Loop::sample_all() {
  std::vector<Known*> order;
  for (auto& [uuid, gpu] : known_) {
    order.push_back(&gpu);
  }
  // Those that cost a worker its life before come last, so that the others are read first.
  std::stable_sort(order.begin(), order.end(), [](const Known* a, const Known* b) {
    return a->times_skipped < b->times_skipped;
  });
  for (Known* gpu : order) {
    if (boottime_ms() >= gpu->skip_until_ms && !sample(*gpu)) {
      return false;
    }
  }
  return true;
}

bool GpuProbe::Loop::sample(Known& gpu) {
  WorkerRequest request;
  request.op = WorkerOp::Sample;
  request.uuid.set(gpu.identity.uuid);
  WorkerFrame frame;
  if (ask(request, options_.call_deadline, &gpu, frame) != Asked::Answered) {
    return false;
  }
  gpu.times_skipped = 0;
  gpu.deaths = 0;
  gpu.fault = gpu_fault(frame.status);
  gpu.detail = gpu.fault == GpuFault::None ? "" : nvml_status_text(frame.status);
  if (frame.status == NvmlStatus::Ok) {
    gpu.telemetry = frame.telemetry;  // else the last good values stay, with their age
    if (frame.flag != 0) {
      gpu.fault = GpuFault::Partitioned;
      gpu.detail = "its MIG mode is on; switch it off to rent it as a whole GPU";
    }
  }
  return true;
}

}  // namespace bmgpu::agent
