#include "agent/gpu/gpu.h"

namespace bmgpu::agent {

const char* fault_word(GpuFault fault) {
  switch (fault) {
    case GpuFault::None:
      return "";
    case GpuFault::Lost:
      return "lost";
    case GpuFault::ResetRequired:
      return "reset required";
    case GpuFault::Hung:
      return "hung";
    case GpuFault::Denied:
      return "denied";
    case GpuFault::Memory:
      return "memory";
    case GpuFault::Hot:
      return "hot";
    case GpuFault::Xid:
      return "xid";
    case GpuFault::Partitioned:
      return "partitioned";
    case GpuFault::Unknown:
      return "unknown";
  }
  return "";
}

const char* driver_word(DriverState state) {
  switch (state) {
    case DriverState::Starting:
      return "starting";
    case DriverState::Ready:
      return "ready";
    case DriverState::NoLibrary:
      return "no library";
    case DriverState::NotLoaded:
      return "not loaded";
    case DriverState::VersionMismatch:
      return "version mismatch";
    case DriverState::Denied:
      return "denied";
    case DriverState::Hung:
      return "hung";
    case DriverState::Failed:
      return "failed";
  }
  return "";
}

}  // namespace bmgpu::agent
