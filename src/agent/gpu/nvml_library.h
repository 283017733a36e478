// A loaded NVML: the real libnvidia-ml.so.1 or libnvml-sim.so.
//
// NVML itself is thread-safe, and so are these functions. Any of its calls may block for minutes on
// a dying GPU: only the worker process calls them.
#pragma once

#include <string>

#include "agent/gpu/nvml_table.h"
#include "base/result.h"

namespace bmgpu::agent {

// What a return code means for us; each value is acted on differently somewhere.
enum class NvmlStatus : int {
  Ok,
  Absent,     // this part, driver or library has no such thing
  NotFound,   // no such device, or nothing to report
  Denied,     // no permission
  NotLoaded,  // kernel module not loaded
  Timeout,    // an event wait ended without an event
  TooSmall,   // the buffer: ask again with a larger one
  Lost,       // the GPU fell off the bus
  ResetRequired,
  Blocked,          // by the operating system, typically a cgroup
  VersionMismatch,  // library and kernel module
  InUse,
  StructVersion,  // the library knows another version of a struct
  Unknown,
};
NvmlStatus nvml_status(nvml::Return code);

// One sentence without a full stop: "the GPU has fallen off the bus".
const char* nvml_status_text(NvmlStatus status);

// Whether it says something of the device as a whole rather than of one quantity.
bool concerns_device(NvmlStatus status);

class NvmlLibrary {
 public:
  // `library` is "auto" (libnvidia-ml.so.1 by the loader's own search) or a path. Unavailable: it
  // cannot be loaded. Refused: it lacks one of init, shutdown, count and handle by index; every
  // other symbol is optional. Does not initialise it.
  static Result<NvmlLibrary> load(const std::string& library);
  ~NvmlLibrary();
  NvmlLibrary(NvmlLibrary&& other) noexcept;
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(NvmlLibrary&&) = delete;

  const nvml::Table& api() const { return table_; }
  // It exports bmgpu_nvml_is_simulated and that says so.
  bool simulated() const { return simulated_; }

 private:
  NvmlLibrary() = default;
  void* handle_ = nullptr;
  nvml::Table table_;
  bool simulated_ = false;
};

// Calls one entry of the table; Absent where the library lacks it.
template <typename Function, typename... Arguments>
NvmlStatus call(Function* function, Arguments... arguments) {
  return function == nullptr ? NvmlStatus::Absent : nvml_status(function(arguments...));
}

// The simulated library that belongs to this executable: lib/libnvml-sim.so or
// lib/bmgpu/libnvml-sim.so beside the folder that it lies in. NotFound names the places.
Result<std::string> find_simulated_library();

}  // namespace bmgpu::agent
