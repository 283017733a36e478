// A simulated node's GPUs for a test: a copy of a shipped profile in a temporary folder, edited
// while the driver runs, and the options that make a GpuProbe read it.
//
//   SimulatedGpus gpus("a100-8.yaml");
//   auto probe = GpuProbe::start(gpus.options()).value();
//   gpus.edit([](SimProfile& p) { p.gpus[3].fault = SimFault::Lost; });
//   EXPECT_EQ(probe->refresh(kLimit).gpus[3].fault, GpuFault::Lost);
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/gpu/probe.h"
#include "agent/gpu/sim_profile.h"

namespace bmgpu::agent {

class SimulatedGpus {
 public:
  // `profile` is the name of a file in packaging/nvml-sim. Not thread-safe.
  explicit SimulatedGpus(const std::string& profile);
  ~SimulatedGpus();  // removes the folder
  SimulatedGpus(const SimulatedGpus&) = delete;
  SimulatedGpus& operator=(const SimulatedGpus&) = delete;

  const std::string& folder() const { return folder_; }
  std::string profile_file() const { return folder_ + "/profile.yaml"; }
  static std::string library();  // libnvml-sim.so as built

  // Options with short deadlines, so that a test of a hang takes a fraction of a second.
  GpuProbeOptions options() const;

  void edit(const std::function<void(SimProfile&)>& change);
  SimProfile profile() const;

 private:
  std::string folder_;
};

// Long enough for any machine; reached only by a test that fails.
inline constexpr std::chrono::milliseconds kTestLimit{20'000};

// Refreshes until `holds(view)`; false after kTestLimit.
bool eventually(GpuProbe& probe, const std::function<bool(const GpuView&)>& holds);

}  // namespace bmgpu::agent
