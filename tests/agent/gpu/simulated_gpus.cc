#include "agent/gpu/simulated_gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "agent/host/facts.h"

namespace bmgpu::agent {

SimulatedGpus::SimulatedGpus(const std::string& profile) {
  std::string name = (std::filesystem::temp_directory_path() / "bmgpu-gpus-XXXXXX").string();
  check(mkdtemp(name.data()) != nullptr, "no temporary folder");
  folder_ = name;
  std::filesystem::copy_file(std::string(TEST_PROFILES) + "/" + profile, profile_file());
}

SimulatedGpus::~SimulatedGpus() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string SimulatedGpus::library() { return TEST_NVML_SIM; }

GpuProbeOptions SimulatedGpus::options() const {
  using std::chrono::milliseconds;
  GpuProbeOptions options;
  options.worker_command = {TEST_NVML_WORKER};
  options.library = library();
  options.sim_profile = profile_file();
  options.sample_period = milliseconds(50);
  options.call_deadline = milliseconds(1000);
  options.init_deadline = milliseconds(10'000);
  options.restart_delay_min = milliseconds(10);
  options.restart_delay_max = milliseconds(100);
  options.hung_retry = milliseconds(60'000);
  return options;
}

void SimulatedGpus::edit(const std::function<void(SimProfile&)>& change) {
  const Result<void> edited = edit_sim_profile(profile_file(), change);
  ASSERT_TRUE(edited.ok()) << edited.error().message;
}

SimProfile SimulatedGpus::profile() const { return load_sim_profile(profile_file()).value(); }

bool eventually(GpuProbe& probe, const std::function<bool(const GpuView&)>& holds) {
  const std::int64_t end_ms = boottime_ms() + kTestLimit.count();
  while (boottime_ms() < end_ms) {
    if (holds(probe.refresh(std::chrono::milliseconds(200)))) {
      return true;
    }
  }
  return false;
}

}  // namespace bmgpu::agent
