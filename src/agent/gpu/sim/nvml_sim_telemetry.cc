// libnvml-sim.so: everything that is measured.
#include <cstring>

#include "agent/gpu/sim/sim_state.h"

namespace bmgpu::agent::sim {

using nvml::Device;
using nvml::Return;
using Profile = std::shared_ptr<const SimProfile>;

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

// Runs `fill(gpu, index)` for a device that answers.
template <typename Fill>
Return on_device(const char* function, Device device, Fill fill) {
  Profile profile;
  std::size_t index = 0;
  const Return code = enter_device(function, device, profile, index);
  return code != nvml::kSuccess ? code : fill(profile->gpus[index], index);
}

template <typename Integer>
Return put(const SimGpu& gpu, std::int64_t value, Integer* out) {
  if (out == nullptr) {
    return nvml::kInvalidArgument;
  }
  *out = gpu.fault == SimFault::Garbage ? static_cast<Integer>(-1) : static_cast<Integer>(value);
  return nvml::kSuccess;
}

std::uint64_t bytes_of(const SimGpu& gpu, std::int64_t mib) {
  return gpu.fault == SimFault::Garbage ? nvml::kAllOnes64 : static_cast<std::uint64_t>(mib) * kMib;
}

Return clock_of(const SimGpu& gpu, std::uint32_t type, std::int64_t sm, std::uint32_t* mhz) {
  switch (type) {
    case nvml::kClockGraphics:
    case nvml::kClockSm:
      return put(gpu, sm, mhz);
    case nvml::kClockMemory:
      return put(gpu, gpu.memory_clock_mhz, mhz);
    default:
      return nvml::kNotSupported;
  }
}

// Writes the process list with `stride` bytes an entry; ids that do not apply read all ones.
Return put_processes(const SimGpu& gpu, std::size_t stride, std::uint32_t* count, void* list) {
  const auto size = static_cast<std::uint32_t>(gpu.processes.size());
  const std::uint32_t room = *count;
  *count = size;
  if (size > room) {
    return nvml::kInsufficientSize;
  }
  for (std::size_t i = 0; i < size; ++i) {
    nvml::ProcessV3 entry{};
    entry.pid = static_cast<std::uint32_t>(gpu.processes[i].pid);
    entry.used_memory = bytes_of(gpu, gpu.processes[i].memory_mib);
    entry.gpu_instance = nvml::kAllOnes32;
    entry.compute_instance = nvml::kAllOnes32;
    std::memcpy(static_cast<char*>(list) + i * stride, &entry, stride);
  }
  return nvml::kSuccess;
}

}  // namespace

BMGPU_NVML_EXPORT Return nvmlDeviceGetMemoryInfo_v2(Device device, nvml::MemoryV2* memory) {
  return on_device(__func__, device, [memory](const SimGpu& gpu, std::size_t) {
    if (memory->version != nvml::struct_version<nvml::MemoryV2>(2)) {
      return nvml::kArgumentVersionMismatch;
    }
    memory->total = bytes_of(gpu, gpu.memory_mib);
    memory->reserved = bytes_of(gpu, gpu.memory_reserved_mib);
    memory->used = bytes_of(gpu, gpu.memory_used_mib);
    memory->free = bytes_of(gpu, gpu.memory_mib - gpu.memory_reserved_mib - gpu.memory_used_mib);
    return nvml::kSuccess;
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetMemoryInfo(Device device, nvml::MemoryV1* memory) {
  return on_device(__func__, device, [memory](const SimGpu& gpu, std::size_t) {
    const std::int64_t used = gpu.memory_used_mib + gpu.memory_reserved_mib;
    memory->total = bytes_of(gpu, gpu.memory_mib);
    memory->used = bytes_of(gpu, used);
    memory->free = bytes_of(gpu, gpu.memory_mib - used);
    return nvml::kSuccess;
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetUtilizationRates(Device device, nvml::Utilization* rates) {
  return on_device(__func__, device, [rates](const SimGpu& gpu, std::size_t) {
    put(gpu, gpu.memory_utilization, &rates->memory);
    return put(gpu, gpu.utilization, &rates->gpu);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetTemperatureV(Device device, nvml::Temperature* temperature) {
  return on_device(__func__, device, [temperature](const SimGpu& gpu, std::size_t) {
    if (temperature->version != nvml::struct_version<nvml::Temperature>(1)) {
      return nvml::kArgumentVersionMismatch;
    }
    return temperature->sensor != nvml::kSensorGpu
               ? nvml::kInvalidArgument
               : put(gpu, gpu.temperature, &temperature->celsius);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetTemperature(Device device, std::uint32_t sensor,
                                                  std::uint32_t* celsius) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    return sensor != nvml::kSensorGpu ? nvml::kInvalidArgument : put(gpu, gpu.temperature, celsius);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetTemperatureThreshold(Device device, std::uint32_t type,
                                                           std::uint32_t* celsius) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    switch (type) {
      case nvml::kThresholdShutdown:
        return put(gpu, gpu.temperature_shutdown, celsius);
      case nvml::kThresholdSlowdown:
        return put(gpu, gpu.temperature_slowdown, celsius);
      default:
        return nvml::kNotSupported;
    }
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetPowerUsage(Device device, std::uint32_t* milliwatts) {
  return on_device(__func__, device, [milliwatts](const SimGpu& gpu, std::size_t) {
    return put(gpu, gpu.power_mw, milliwatts);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetTotalEnergyConsumption(Device device,
                                                             std::uint64_t* millijoules) {
  return on_device(__func__, device, [millijoules](const SimGpu& gpu, std::size_t index) {
    return put(gpu, static_cast<std::int64_t>(state().energy_mj(index)), millijoules);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetEnforcedPowerLimit(Device device, std::uint32_t* milliwatts) {
  return on_device(__func__, device, [milliwatts](const SimGpu& gpu, std::size_t) {
    return put(gpu, gpu.power_limit_mw, milliwatts);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetPowerManagementLimitConstraints(Device device,
                                                                      std::uint32_t* min,
                                                                      std::uint32_t* max) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    put(gpu, gpu.power_limit_mw / 2, min);
    return put(gpu, gpu.power_limit_mw, max);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetClockInfo(Device device, std::uint32_t type,
                                                std::uint32_t* mhz) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    return clock_of(gpu, type, gpu.sm_clock_mhz, mhz);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetMaxClockInfo(Device device, std::uint32_t type,
                                                   std::uint32_t* mhz) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    return clock_of(gpu, type, gpu.sm_clock_max_mhz, mhz);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetCurrentClocksEventReasons(Device device,
                                                                std::uint64_t* reasons) {
  return on_device(__func__, device, [reasons](const SimGpu& gpu, std::size_t) {
    return put(gpu, gpu.clock_reasons, reasons);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device,
                                                                   std::uint64_t* reasons) {
  return on_device(__func__, device, [reasons](const SimGpu& gpu, std::size_t) {
    return put(gpu, gpu.clock_reasons, reasons);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetTotalEccErrors(Device device, std::uint32_t type,
                                                     std::uint32_t counter, std::uint64_t* count) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    if (type > nvml::kErrorUncorrected || counter > nvml::kCounterAggregate) {
      return nvml::kInvalidArgument;
    }
    return put(gpu, type == nvml::kErrorCorrected ? gpu.ecc_corrected : gpu.ecc_uncorrected, count);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetRemappedRows(Device device, std::uint32_t* corrected,
                                                   std::uint32_t* uncorrected,
                                                   std::uint32_t* pending, std::uint32_t* failed) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    put(gpu, gpu.rows_remapped_corrected, corrected);
    put(gpu, gpu.rows_remapped_uncorrected, uncorrected);
    put(gpu, gpu.row_remap_pending ? 1 : 0, pending);
    return put(gpu, gpu.row_remap_failed ? 1 : 0, failed);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetMigMode(Device device, std::uint32_t* current,
                                              std::uint32_t* pending) {
  return on_device(__func__, device, [=](const SimGpu& gpu, std::size_t) {
    if (gpu.mig == SimMig::Unsupported) {
      return nvml::kNotSupported;
    }
    *current = *pending = gpu.mig == SimMig::On ? 1 : 0;
    return nvml::kSuccess;
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(Device device,
                                                                 std::uint32_t* count, void* list) {
  const Profile profile = state().profile();
  return on_device(__func__, device, [&](const SimGpu& gpu, std::size_t) {
    return put_processes(gpu, static_cast<std::size_t>(profile->process_stride), count, list);
  });
}

BMGPU_NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v2(Device device,
                                                                 std::uint32_t* count, void* list) {
  return on_device(__func__, device, [&](const SimGpu& gpu, std::size_t) {
    return put_processes(gpu, sizeof(nvml::ProcessV2), count, list);
  });
}

}  // namespace bmgpu::agent::sim
