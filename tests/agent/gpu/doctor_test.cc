#include "agent/gpu/doctor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "agent/gpu/cdi.h"
#include "agent/gpu/simulated_gpus.h"

namespace bmgpu::agent {
namespace {

GpuView view_of_two() {
  GpuView view;
  view.driver = DriverState::Ready;
  view.driver_version = "550.1-simulated";
  view.simulated = true;
  for (int i = 0; i < 2; ++i) {
    GpuState gpu;
    gpu.identity = {"GPU-" + std::to_string(i),
                    "00000000:17:00.0",
                    "1",
                    "NVIDIA A40",
                    GpuForm::Pcie,
                    46068,
                    40 + i};
    gpu.health = 100;
    view.gpus.push_back(gpu);
  }
  return view;
}

DoctorCheck named(const std::vector<DoctorCheck>& checks, const std::string& name) {
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [&name](const DoctorCheck& check) { return check.name == name; });
  EXPECT_NE(found, checks.end()) << name;
  return found == checks.end() ? DoctorCheck{} : *found;
}

TEST(GpuDoctorTest, EveryProblemComesWithAdvice) {
  SimulatedGpus folder("rtx4090-2.yaml");
  GpuView view = view_of_two();
  view.gpus[1].fault = GpuFault::Hung;
  view.gpus[1].detail = "the driver does not answer for it in time";
  const std::vector<DoctorCheck> checks =
      doctor_gpus(view, {folder.folder(), "bm-gpu.example/node-1", folder.folder() + "/dev"});
  EXPECT_TRUE(named(checks, "gpu driver").ok);
  EXPECT_FALSE(named(checks, "gpus").ok);
  EXPECT_TRUE(named(checks, "gpu GPU-0").ok);
  EXPECT_NE(named(checks, "gpu GPU-1").detail.find("hung: the driver does not answer"),
            std::string::npos);
  EXPECT_FALSE(named(checks, "device files").ok);
  EXPECT_FALSE(named(checks, "cdi file").ok);
  for (const DoctorCheck& check : checks) {
    EXPECT_EQ(check.ok, check.advice.empty()) << check.name;
    EXPECT_FALSE(check.detail.empty()) << check.name;
  }
}

TEST(GpuDoctorTest, NoCdiFileIsLookedForBeforeItHasAName) {
  const auto looks = [](const std::string& kind) {
    const std::vector<DoctorCheck> checks = doctor_gpus(view_of_two(), {"/nonexistent", kind, ""});
    return std::any_of(checks.begin(), checks.end(),
                       [](const DoctorCheck& check) { return check.name == "cdi file"; });
  };
  EXPECT_FALSE(looks(""));
  EXPECT_TRUE(looks("a/b"));
}

TEST(GpuDoctorTest, NoDriverSaysHowToGoOn) {
  GpuView view;
  view.driver = DriverState::NoLibrary;
  view.detail = "cannot load libnvidia-ml.so.1";
  const DoctorCheck check = named(doctor_gpus(view, {"/nonexistent", "a/b", ""}), "gpu driver");
  EXPECT_FALSE(check.ok);
  EXPECT_NE(check.advice.find("nvml.sim_profile"), std::string::npos);
}

TEST(GpuDoctorTest, AHealthyNodePasses) {
  SimulatedGpus folder("rtx4090-2.yaml");
  const GpuView view = view_of_two();
  CdiSpec spec;
  spec.kind = "bm-gpu.example/node-1";
  spec.devices = {{"GPU-0", 40}, {"GPU-1", 41}};
  spec.device_dir = folder.folder() + "/dev";
  ASSERT_TRUE(write_cdi(folder.folder(), spec).ok());
  const bool devices = ensure_simulated_devices(spec.device_dir, {40, 41}).ok();
  EXPECT_EQ(devices, geteuid() == 0);
  for (const DoctorCheck& check :
       doctor_gpus(view, {folder.folder(), spec.kind, spec.device_dir})) {
    EXPECT_TRUE(check.ok || (!devices && check.name == "device files"))
        << check.name << ": " << check.detail;
  }
}

}  // namespace
}  // namespace bmgpu::agent
