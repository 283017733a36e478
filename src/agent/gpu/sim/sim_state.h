// The state of one process's simulated driver: the profile as last read, what the energy counters
// have added up to, and what was delivered as events.
//
// Thread-safe: one lock, never held while a call hangs or waits.
#pragma once

#include <sys/stat.h>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/gpu/nvml_abi.h"
#include "agent/gpu/sim_profile.h"

namespace bmgpu::agent::sim {

// A registered set: per GPU the mask and how many of its XIDs it has seen.
struct EventSetState {
  struct Entry {
    std::uint64_t mask = 0;
    std::size_t seen = 0;
  };
  std::map<std::size_t, Entry> gpus;
};

class SimState {
 public:
  // Reads the profile that BMGPU_NVML_SIM_PROFILE names. On failure returns an NVML code and
  // explain() says why.
  nvml::Return init();
  nvml::Return shutdown();
  bool initialised();
  std::string explain();

  // The newest profile: read again if the file's inode, size or times changed. One that cannot be
  // read or is wrong is reported once on standard error and the last good one stays. Null before
  // the first init().
  std::shared_ptr<const SimProfile> profile();

  // Millijoules: what the power of the profile has added up to, and the profile's own offset.
  std::uint64_t energy_mj(std::size_t index);

  nvml::EventSet create_set();
  bool free_set(nvml::EventSet set);
  bool register_events(nvml::EventSet set, std::size_t index, std::uint64_t mask);
  // The next XID that `set` has not seen. False: there is none.
  bool next_xid(nvml::EventSet set, std::size_t& index, std::uint64_t& xid);
  bool knows_set(nvml::EventSet set);

 private:
  bool refresh();  // REQUIRES: the lock. False: nothing usable was read
  void integrate();

  std::mutex mutex_;
  int uses_ = 0;
  std::string file_;
  struct stat seen_ {};
  std::shared_ptr<const SimProfile> profile_;
  std::string complaint_;
  std::vector<std::int64_t> energy_uj_;
  std::int64_t integrated_ms_ = 0;
  std::map<nvml::EventSet, EventSetState> sets_;
};

// The one state of the process: the C interface has no place to pass it in.
SimState& state();

// Devices are opaque pointers; index_of returns false for anything that is not one of ours.
nvml::Device device_at(std::size_t index);
bool index_of(nvml::Device device, std::size_t& index);

// What every entry point asks first. Success: go on with `profile`.
nvml::Return enter(const char* function, std::shared_ptr<const SimProfile>& profile);

// The same for a call on a device, with the GPU's fault and delay applied; hangs if it says so.
nvml::Return enter_device(const char* function, nvml::Device device,
                          std::shared_ptr<const SimProfile>& profile, std::size_t& index);

// Copies `text` with its end into a caller's buffer.
nvml::Return put_text(const std::string& text, char* buffer, std::uint32_t bytes);

[[noreturn]] void hang();

}  // namespace bmgpu::agent::sim

// Every exported function has C linkage and default visibility; all else in the library is hidden.
#define BMGPU_NVML_EXPORT extern "C" __attribute__((visibility("default")))
