// Questions to the driver, as a worker process asks them. Each may block for ever; none allocates
// driver resources that outlive it, apart from the one event set.
//
// Not thread-safe, except that after the first watch() that succeeded wait_event() may run beside
// the others.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "agent/gpu/gpu.h"
#include "agent/gpu/nvml_library.h"

namespace bmgpu::agent {

// What `status` means for a driver that was just initialised.
DriverState driver_state(NvmlStatus status);
// What it means for a GPU; None for what does not concern the device.
GpuFault gpu_fault(NvmlStatus status);

// The form is not in NVML: it is told by the model's name. Unknown rather than a guess.
GpuForm form_of(const std::string& model);

class NvmlSession {
 public:
  explicit NvmlSession(NvmlLibrary library) : library_(std::move(library)) {}

  struct Opened {
    NvmlStatus status = NvmlStatus::Unknown;
    std::string detail;  // the driver's own words if not Ok
    std::string driver_version;
    std::uint32_t count = 0;
  };
  Opened open();
  bool simulated() const { return library_.simulated(); }

  // How many GPUs the driver counts now; some of them may have no handle.
  NvmlStatus count(std::uint32_t& count);

  NvmlStatus identify(std::uint32_t index, GpuIdentity& identity);

  // Reads everything of one GPU. Not Ok: the device as a whole does not answer, `telemetry` holds
  // what was read before that was known. `partitioned`: MIG mode is on.
  NvmlStatus sample(const std::string& uuid, GpuTelemetry& telemetry, bool& partitioned);

  // Registers for the events of the GPU; Absent where it has none.
  NvmlStatus watch(const std::string& uuid);
  // Waits for one event. Timeout: none came.
  NvmlStatus wait_event(std::uint32_t timeout_ms, GpuEvent& event);

 private:
  NvmlStatus handle(const std::string& uuid, nvml::Device& device);

  NvmlLibrary library_;
  std::map<std::string, nvml::Device> handles_;
  nvml::EventSet events_ = nullptr;  // does not change once a GPU is watched
  std::mutex watched_mutex_;
  std::map<nvml::Device, std::string> watched_;
};

}  // namespace bmgpu::agent
