#include "agent/gpu/doctor.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "agent/gpu/cdi.h"
#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

constexpr unsigned kNvidiaMajor = 195;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

const char* driver_advice(DriverState state) {
  switch (state) {
    case DriverState::Starting:
      return "wait: the driver was not asked yet";
    case DriverState::Ready:
      return "";
    case DriverState::NoLibrary:
      return "install the NVIDIA driver, or set nvml.sim_profile to try without a GPU";
    case DriverState::NotLoaded:
      return "load the kernel module (nvidia-modprobe), or reboot after a driver update";
    case DriverState::VersionMismatch:
      return "reboot: the driver was updated while its old kernel module is loaded";
    case DriverState::Denied:
      return "run bm-agent as root, outside a container that hides the devices";
    case DriverState::Hung:
      return "look for 'Xid' in the kernel log and reboot the node";
    case DriverState::Failed:
      return "run nvidia-smi and look into the kernel log";
  }
  return "";
}

const char* fault_advice(GpuFault fault) {
  switch (fault) {
    case GpuFault::None:
      return "";
    case GpuFault::Lost:
    case GpuFault::Hung:
      return "drain the node and reboot it; if it comes back, have the card and its slot checked";
    case GpuFault::ResetRequired:
    case GpuFault::Xid:
      return "drain the node, then nvidia-smi --gpu-reset, or reboot";
    case GpuFault::Denied:
      return "run bm-agent as root, outside a container that hides the devices";
    case GpuFault::Memory:
      return "drain the node and reset the GPU; if it stays, replace the card";
    case GpuFault::Hot:
      return "check fans, dust and room temperature";
    case GpuFault::Partitioned:
      return "nvidia-smi -mig 0, then reset the GPU";
    case GpuFault::Unknown:
      return "run nvidia-smi and look into the kernel log";
  }
  return "";
}

DoctorCheck check_driver(const GpuView& view) {
  const bool ready = view.driver == DriverState::Ready;
  std::string detail = driver_word(view.driver);
  if (!view.driver_version.empty()) {
    detail += ", version " + view.driver_version + (view.simulated ? " (simulated)" : "");
  }
  if (!view.detail.empty()) {
    detail += ": " + view.detail;
  }
  return {"gpu driver", ready, detail, driver_advice(view.driver)};
}

DoctorCheck check_count(const GpuView& view) {
  const auto healthy = std::count_if(view.gpus.begin(), view.gpus.end(), [](const GpuState& gpu) {
    return gpu.fault == GpuFault::None;
  });
  const bool ok = healthy > 0 && static_cast<std::size_t>(healthy) == view.gpus.size();
  return {"gpus", ok,
          std::to_string(healthy) + " of " + std::to_string(view.gpus.size()) + " are healthy",
          ok ? "" : "see the lines of the others; only healthy GPUs are offered"};
}

DoctorCheck check_gpu(const GpuState& gpu) {
  const bool ok = gpu.fault == GpuFault::None;
  std::string detail = gpu.identity.model + " at " + gpu.identity.pci_bus_id + ", health " +
                       std::to_string(gpu.health);
  if (!ok) {
    detail += ", " + std::string(fault_word(gpu.fault)) + ": " + gpu.detail;
  }
  return {"gpu " + gpu.identity.uuid, ok, detail, fault_advice(gpu.fault)};
}

DoctorCheck check_cdi(const GpuView& view, const GpuDoctorOptions& options) {
  const std::string path = cdi_path(options.cdi_dir, options.cdi_kind);
  Result<std::string> text = read_small_file(path, kFileBytesMax);
  if (!text) {
    return {"cdi file", false, text.error().message,
            "start bm-agent: it writes the file when it has seen its GPUs"};
  }
  for (const GpuState& gpu : view.gpus) {
    if (text->find('"' + gpu.identity.uuid + '"') == std::string::npos) {
      return {"cdi file", false, path + " does not hold " + gpu.identity.uuid,
              "restart bm-agent: it writes the file anew"};
    }
  }
  return {"cdi file", true, path, ""};
}

DoctorCheck check_devices(const GpuView& view, const GpuDoctorOptions& options) {
  const std::string folder = options.device_dir.empty() ? "/dev" : options.device_dir;
  for (const GpuState& gpu : view.gpus) {
    const std::string path = folder + "/nvidia" + std::to_string(gpu.identity.minor);
    struct stat status {};
    const bool there = stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode);
    if (!there || major(status.st_rdev) != kNvidiaMajor ||
        minor(status.st_rdev) != static_cast<unsigned>(gpu.identity.minor)) {
      return {"device files", false,
              path + (there ? " has other numbers than 195:" + std::to_string(gpu.identity.minor)
                            : " is missing"),
              options.device_dir.empty() ? "run nvidia-modprobe -c 0, or reboot"
                                         : "restart bm-agent as root: it makes the file anew"};
    }
  }
  return {"device files", true, std::to_string(view.gpus.size()) + " in " + folder, ""};
}

}  // namespace

std::vector<DoctorCheck> doctor_gpus(const GpuView& view, const GpuDoctorOptions& options) {
  std::vector<DoctorCheck> checks = {check_driver(view), check_count(view)};
  for (const GpuState& gpu : view.gpus) {
    checks.push_back(check_gpu(gpu));
  }
  checks.push_back(check_devices(view, options));
  if (!options.cdi_kind.empty()) {
    checks.push_back(check_cdi(view, options));
  }
  return checks;
}

}  // namespace bmgpu::agent
