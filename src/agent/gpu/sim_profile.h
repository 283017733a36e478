// The profile of a simulated driver: the YAML file that libnvml-sim.so answers from, as values.
// docs/reference/nvml-sim.md describes every key for people.
//
// All functions may be called from any thread; two editors of one file must not run at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

enum class SimFault : std::uint8_t {
  None,
  Lost,
  ResetRequired,
  Hang,  // a call never returns
  Denied,
  Blocked,
  Unknown,
  Garbage,  // every number reads all ones
  Gone,     // counted, but there is no handle for it
  Crash,    // a call ends the process that makes it
};
enum class SimInitFault : std::uint8_t { None, Hang, NotLoaded, VersionMismatch, Denied, Unknown };
enum class SimMig : std::uint8_t { Unsupported, Off, On };

struct SimProcess {
  std::int64_t pid = 0;
  std::int64_t memory_mib = 0;
  bool operator==(const SimProcess&) const = default;
};

struct SimGpu {
  std::string model;
  std::string uuid;         // empty: made from seed and index
  std::string serial;       // empty: made from seed and index
  std::int64_t minor = -1;  // -1: minor_base + index
  std::int64_t memory_mib = 0;
  std::int64_t memory_reserved_mib = 0;
  std::int64_t memory_used_mib = 0;
  std::int64_t temperature = 30;
  std::int64_t temperature_slowdown = 90;
  std::int64_t temperature_shutdown = 95;
  std::int64_t power_mw = 0;
  std::int64_t power_limit_mw = 0;
  std::int64_t energy_mj = 0;  // added to what the power adds up to
  std::int64_t utilization = 0;
  std::int64_t memory_utilization = 0;
  std::int64_t sm_clock_mhz = 0;
  std::int64_t sm_clock_max_mhz = 0;
  std::int64_t memory_clock_mhz = 0;
  std::int64_t clock_reasons = 1;  // bits; 1 = idle
  std::int64_t ecc_corrected = 0;
  std::int64_t ecc_uncorrected = 0;
  std::int64_t rows_remapped_corrected = 0;
  std::int64_t rows_remapped_uncorrected = 0;
  std::int64_t delay_ms = 0;  // every call takes this long
  bool row_remap_pending = false;
  bool row_remap_failed = false;
  SimMig mig = SimMig::Unsupported;
  SimFault fault = SimFault::None;
  std::vector<std::int64_t> xids;  // what is appended while it runs is delivered as an event
  std::vector<SimProcess> processes;
  bool operator==(const SimGpu&) const = default;
};

struct SimProfile {
  std::string driver_version;  // reported with "-simulated" appended
  std::string library_version;
  std::int64_t cuda_version = 12040;
  std::int64_t seed = 0;             // makes UUIDs and serials: another seed, another node
  std::int64_t minor_base = 0;       // first N of /dev/nvidiaN
  std::int64_t process_stride = 24;  // bytes per entry of the process list: 16, 24 or 32
  SimInitFault init = SimInitFault::None;
  bool events_failing = false;           // event waits fail at once
  std::vector<std::string> absent;       // functions that this driver lacks
  std::vector<std::string> unsupported;  // functions that this part does not support
  SimGpu defaults;                       // what a GPU has unless its own entry says otherwise
  std::vector<SimGpu> gpus;              // at most 64
  bool operator==(const SimProfile&) const = default;
};

// Reads and checks a profile. InvalidArgument names file, line and the nearest known key or
// function; NotFound: no such file.
Result<SimProfile> load_sim_profile(const std::string& file);

// The file's text: loading it gives `profile` back. Keys that equal the defaults are left out.
std::string sim_profile_text(const SimProfile& profile);

// Checks `profile` and replaces the file in one step (temporary file, fsync, rename). Comments of
// the old file are lost.
Result<void> save_sim_profile(const std::string& file, const SimProfile& profile);

// load, `edit`, save: the way in which tests and demos heat, lose or hang a GPU.
Result<void> edit_sim_profile(const std::string& file,
                              const std::function<void(SimProfile&)>& edit);

// What the simulated driver reports for GPU `index`.
std::string sim_uuid(const SimProfile& profile, std::size_t index);
std::string sim_serial(const SimProfile& profile, std::size_t index);
std::int32_t sim_minor(const SimProfile& profile, std::size_t index);

}  // namespace bmgpu::agent
