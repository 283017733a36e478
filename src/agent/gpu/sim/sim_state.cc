#include "agent/gpu/sim/sim_state.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bmgpu::agent::sim {
namespace {

std::array<char, 64> devices;  // their addresses are the handles

std::int64_t boottime_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool contains(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

nvml::Return init_code(SimInitFault fault) {
  switch (fault) {
    case SimInitFault::None:
      return nvml::kSuccess;
    case SimInitFault::Hang:
      hang();
    case SimInitFault::NotLoaded:
      return nvml::kDriverNotLoaded;
    case SimInitFault::VersionMismatch:
      return nvml::kVersionMismatch;
    case SimInitFault::Denied:
      return nvml::kNoPermission;
    case SimInitFault::Unknown:
      return nvml::kUnknown;
  }
  return nvml::kUnknown;
}

}  // namespace

SimState& state() {
  // Never destroyed: a thread may still hang inside a call when the process ends.
  static SimState* const the_state = new SimState;
  return *the_state;
}

[[noreturn]] void hang() {
  while (true) {
    pause();
  }
}

nvml::Return SimState::init() {
  SimInitFault fault = SimInitFault::None;
  {
    const std::lock_guard lock(mutex_);
    const char* file = std::getenv("BMGPU_NVML_SIM_PROFILE");
    if (file == nullptr || *file == '\0') {
      complaint_ = "BMGPU_NVML_SIM_PROFILE does not name a profile";
      return nvml::kUnknown;
    }
    file_ = file;
    if (!refresh()) {
      return nvml::kUnknown;
    }
    fault = profile_->init;
    if (fault == SimInitFault::None) {
      ++uses_;
    }
  }
  return init_code(fault);
}

nvml::Return SimState::shutdown() {
  const std::lock_guard lock(mutex_);
  if (uses_ == 0) {
    return nvml::kUninitialized;
  }
  if (--uses_ == 0) {
    sets_.clear();
  }
  return nvml::kSuccess;
}

bool SimState::initialised() {
  const std::lock_guard lock(mutex_);
  return uses_ > 0;
}

std::string SimState::explain() {
  const std::lock_guard lock(mutex_);
  return complaint_;
}

bool SimState::refresh() {
  struct stat now {};
  if (stat(file_.c_str(), &now) != 0) {
    std::memset(&now, 0, sizeof now);
  }
  if (profile_ != nullptr && same_file(now, seen_)) {
    return true;
  }
  Result<SimProfile> loaded = load_sim_profile(file_);
  seen_ = now;
  if (!loaded) {
    complaint_ = loaded.error().message;
    std::fprintf(stderr, "libnvml-sim: %s%s\n", complaint_.c_str(),
                 profile_ == nullptr ? "" : "; the profile read before stays");
    return false;
  }
  complaint_.clear();
  integrate();
  const std::int64_t now_ms = boottime_ms();
  for (std::size_t i = energy_uj_.size(); i < loaded->gpus.size(); ++i) {
    energy_uj_.push_back(loaded->gpus[i].power_mw * now_ms);
  }
  integrated_ms_ = now_ms;
  profile_ = std::make_shared<const SimProfile>(std::move(*loaded));
  return true;
}

void SimState::integrate() {
  if (profile_ == nullptr) {
    return;
  }
  const std::int64_t now_ms = boottime_ms();
  for (std::size_t i = 0; i < profile_->gpus.size(); ++i) {
    energy_uj_[i] += profile_->gpus[i].power_mw * (now_ms - integrated_ms_);
  }
  integrated_ms_ = now_ms;
}

std::shared_ptr<const SimProfile> SimState::profile() {
  const std::lock_guard lock(mutex_);
  if (uses_ > 0) {
    refresh();
  }
  return profile_;
}

std::uint64_t SimState::energy_mj(std::size_t index) {
  const std::lock_guard lock(mutex_);
  integrate();
  if (index >= profile_->gpus.size()) {
    return 0;
  }
  return static_cast<std::uint64_t>(energy_uj_[index] / 1000 + profile_->gpus[index].energy_mj);
}

nvml::EventSet SimState::create_set() {
  const std::lock_guard lock(mutex_);
  nvml::EventSet set = new char;
  sets_.emplace(set, EventSetState{});
  return set;
}

bool SimState::free_set(nvml::EventSet set) {
  const std::lock_guard lock(mutex_);
  if (sets_.erase(set) == 0) {
    return false;
  }
  delete static_cast<char*>(set);
  return true;
}

bool SimState::knows_set(nvml::EventSet set) {
  const std::lock_guard lock(mutex_);
  return sets_.contains(set);
}

bool SimState::register_events(nvml::EventSet set, std::size_t index, std::uint64_t mask) {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find(set);
  if (found == sets_.end() || index >= profile_->gpus.size()) {
    return false;
  }
  found->second.gpus[index] = {mask, profile_->gpus[index].xids.size()};
  return true;
}

bool SimState::next_xid(nvml::EventSet set, std::size_t& index, std::uint64_t& xid) {
  const std::lock_guard lock(mutex_);
  refresh();
  const auto found = sets_.find(set);
  if (found == sets_.end()) {
    return false;
  }
  for (auto& [gpu, entry] : found->second.gpus) {
    const std::size_t known = gpu < profile_->gpus.size() ? profile_->gpus[gpu].xids.size() : 0;
    entry.seen = std::min(entry.seen, known);
    if ((entry.mask & nvml::kEventXid) != 0 && entry.seen < known) {
      index = gpu;
      xid = static_cast<std::uint64_t>(profile_->gpus[gpu].xids[entry.seen++]);
      return true;
    }
  }
  return false;
}

nvml::Device device_at(std::size_t index) { return &devices[index]; }

bool index_of(nvml::Device device, std::size_t& index) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (device == &devices[i]) {
      index = i;
      return true;
    }
  }
  return false;
}

nvml::Return enter(const char* function, std::shared_ptr<const SimProfile>& profile) {
  if (!state().initialised()) {
    return nvml::kUninitialized;
  }
  profile = state().profile();
  if (contains(profile->absent, function)) {
    return nvml::kFunctionNotFound;
  }
  return contains(profile->unsupported, function) ? nvml::kNotSupported : nvml::kSuccess;
}

nvml::Return enter_device(const char* function, nvml::Device device,
                          std::shared_ptr<const SimProfile>& profile, std::size_t& index) {
  if (const nvml::Return code = enter(function, profile); code != nvml::kSuccess) {
    return code;
  }
  if (!index_of(device, index)) {
    return nvml::kInvalidArgument;
  }
  if (index >= profile->gpus.size()) {
    return nvml::kGpuIsLost;
  }
  const SimGpu& gpu = profile->gpus[index];
  if (gpu.delay_ms > 0) {
    const timespec delay{gpu.delay_ms / 1000, gpu.delay_ms % 1000 * 1'000'000};
    nanosleep(&delay, nullptr);
  }
  switch (gpu.fault) {
    case SimFault::None:
    case SimFault::Garbage:
      return nvml::kSuccess;
    case SimFault::Lost:
    case SimFault::Gone:
      return nvml::kGpuIsLost;
    case SimFault::ResetRequired:
      return nvml::kResetRequired;
    case SimFault::Hang:
      hang();
    case SimFault::Crash:
      raise(SIGKILL);  // at once, without what exiting runs
      hang();
    case SimFault::Denied:
      return nvml::kNoPermission;
    case SimFault::Blocked:
      return nvml::kOperatingSystem;
    case SimFault::Unknown:
      return nvml::kUnknown;
  }
  return nvml::kUnknown;
}

nvml::Return put_text(const std::string& text, char* buffer, std::uint32_t bytes) {
  if (buffer == nullptr) {
    return nvml::kInvalidArgument;
  }
  if (text.size() >= bytes) {
    return nvml::kInsufficientSize;
  }
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

}  // namespace bmgpu::agent::sim
