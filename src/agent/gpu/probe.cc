#include "agent/gpu/probe.h"

#include "agent/gpu/nvml_library.h"
#include "agent/gpu/probe_loop.h"

namespace bmgpu::agent {

Result<std::unique_ptr<GpuProbe>> GpuProbe::start(GpuProbeOptions options) {
  using std::chrono::milliseconds;
  for (const milliseconds span :
       {options.sample_period, options.call_deadline, options.init_deadline,
        options.restart_delay_min, options.restart_delay_max, options.hung_retry}) {
    if (span < milliseconds(1) || span > std::chrono::hours(24)) {
      return Error{ErrorCode::InvalidArgument,
                   "periods and deadlines of the GPU probe must lie between 1 ms and 24 h"};
    }
  }
  if (options.library == "auto" && !options.sim_profile.empty()) {
    Result<std::string> library = find_simulated_library();
    if (!library) {
      return library.error();
    }
    options.library = *library;
  }
  if (options.worker_command.empty()) {
    options.worker_command = {"/proc/self/exe", "nvml-worker"};
  }
  return std::unique_ptr<GpuProbe>(new GpuProbe(std::make_unique<Loop>(std::move(options))));
}

GpuProbe::GpuProbe(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
GpuProbe::~GpuProbe() = default;

GpuView GpuProbe::view() const { return loop_->view(); }
GpuView GpuProbe::refresh(std::chrono::milliseconds limit) { return loop_->refresh(limit); }
GpuProbe::Events GpuProbe::take_events() { return loop_->take_events(); }
GpuProbe::Counters GpuProbe::counters() const { return loop_->counters(); }

}  // namespace bmgpu::agent
