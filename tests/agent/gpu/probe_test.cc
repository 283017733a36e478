#include "agent/gpu/probe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

#include "agent/gpu/simulated_gpus.h"
#include "agent/host/durable_file.h"
#include "agent/host/facts.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

class GpuProbeTest : public ::testing::Test {
 protected:
  explicit GpuProbeTest(const std::string& profile = "a100-8.yaml") : gpus_(profile) {}

  std::unique_ptr<GpuProbe> start(const GpuProbeOptions& options) {
    Result<std::unique_ptr<GpuProbe>> probe = GpuProbe::start(options);
    EXPECT_TRUE(probe.ok());
    return std::move(*probe);
  }
  std::string uuid(std::size_t index) const { return sim_uuid(gpus_.profile(), index); }
  static const GpuState* find(const GpuView& view, const std::string& uuid) {
    for (const GpuState& gpu : view.gpus) {
      if (gpu.identity.uuid == uuid) {
        return &gpu;
      }
    }
    return nullptr;
  }
  bool reads(GpuProbe& probe, std::size_t index, GpuFault fault) {
    const std::string name = uuid(index);
    return eventually(probe, [&](const GpuView& view) {
      const GpuState* gpu = find(view, name);
      return gpu != nullptr && gpu->fault == fault;
    });
  }
  static std::size_t healthy(const GpuView& view) {
    return static_cast<std::size_t>(
        std::count_if(view.gpus.begin(), view.gpus.end(),
                      [](const GpuState& gpu) { return gpu.fault == GpuFault::None; }));
  }
  void break_gpu(std::size_t index, SimFault fault) {
    gpus_.edit([=](SimProfile& p) { p.gpus[index].fault = fault; });
  }

  SimulatedGpus gpus_;
};

TEST_F(GpuProbeTest, InventoryAndTelemetryOfAHealthyNode) {
  const auto probe = start(gpus_.options());
  const GpuView view = probe->refresh(kTestLimit);
  EXPECT_EQ(view.driver, DriverState::Ready);
  EXPECT_TRUE(view.simulated);
  EXPECT_EQ(view.driver_version, "550.127.08-simulated");
  EXPECT_EQ(view.detail, "");
  ASSERT_EQ(view.gpus.size(), 8u);
  EXPECT_EQ(healthy(view), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    const GpuState& gpu = view.gpus[i];
    EXPECT_EQ(gpu.identity.uuid, uuid(i));  // ordered by PCI address
    EXPECT_EQ(gpu.identity.minor, static_cast<int>(i));
    EXPECT_EQ(gpu.health, 100);
    EXPECT_EQ(gpu.telemetry.temperature_c.value(), gpus_.profile().gpus[i].temperature);
    EXPECT_EQ(gpu.telemetry.memory_used_mib.value(), 0);
    EXPECT_GT(gpu.telemetry.taken_boottime_ms, 0);
  }
}

TEST_F(GpuProbeTest, EachFaultReadsAsWhatItIsAndSparesTheOthers) {
  struct Case {
    std::function<void(SimGpu&)> break_it;
    GpuFault fault;
  };
  const std::vector<Case> cases = {
      {[](SimGpu& g) { g.fault = SimFault::Lost; }, GpuFault::Lost},
      {[](SimGpu& g) { g.fault = SimFault::Gone; }, GpuFault::Lost},
      {[](SimGpu& g) { g.fault = SimFault::ResetRequired; }, GpuFault::ResetRequired},
      {[](SimGpu& g) { g.fault = SimFault::Denied; }, GpuFault::Denied},
      {[](SimGpu& g) { g.fault = SimFault::Blocked; }, GpuFault::Denied},
      {[](SimGpu& g) { g.fault = SimFault::Unknown; }, GpuFault::Unknown},
      {[](SimGpu& g) { g.temperature = 92; }, GpuFault::Hot},
      {[](SimGpu& g) { g.row_remap_failed = true; }, GpuFault::Memory},
      {[](SimGpu& g) { g.row_remap_pending = true; }, GpuFault::Memory},
      {[](SimGpu& g) { g.ecc_uncorrected = 2; }, GpuFault::Memory},
      {[](SimGpu& g) { g.mig = SimMig::On; }, GpuFault::Partitioned},
  };
  const auto probe = start(gpus_.options());
  ASSERT_TRUE(reads(*probe, 3, GpuFault::None));
  for (const Case& one : cases) {
    gpus_.edit([&one](SimProfile& p) { one.break_it(p.gpus[3]); });
    EXPECT_TRUE(reads(*probe, 3, one.fault)) << fault_word(one.fault);
    const GpuView view = probe->view();
    EXPECT_EQ(healthy(view), 7u) << fault_word(one.fault);
    EXPECT_EQ(find(view, uuid(3))->health, 0);
    EXPECT_NE(find(view, uuid(3))->detail, "");
    gpus_.edit([](SimProfile& p) { p.gpus[3] = p.defaults; });
    EXPECT_TRUE(reads(*probe, 3, GpuFault::None)) << "no way back from " << fault_word(one.fault);
  }
  EXPECT_EQ(probe->counters().workers_killed, 0u);
}

TEST_F(GpuProbeTest, ALostGpuKeepsItsLastValuesWithTheirAge) {
  const auto probe = start(gpus_.options());
  ASSERT_TRUE(reads(*probe, 2, GpuFault::None));
  break_gpu(2, SimFault::Lost);
  ASSERT_TRUE(reads(*probe, 2, GpuFault::Lost));
  const GpuState before = *find(probe->view(), uuid(2));
  const GpuView after = probe->refresh(kTestLimit);
  EXPECT_EQ(find(after, uuid(2))->telemetry, before.telemetry);
  EXPECT_GT(find(after, uuid(1))->telemetry.taken_boottime_ms, before.telemetry.taken_boottime_ms);
}

TEST_F(GpuProbeTest, AHungGpuIsAReadingAndTheOthersGoOn) {
  const auto probe = start(gpus_.options());
  ASSERT_TRUE(reads(*probe, 5, GpuFault::None));
  break_gpu(5, SimFault::Hang);
  ASSERT_TRUE(reads(*probe, 5, GpuFault::Hung));
  const std::int64_t hung_ms = boottime_ms();
  EXPECT_TRUE(eventually(*probe, [&](const GpuView& view) {
    return healthy(view) == 7 &&
           std::all_of(view.gpus.begin(), view.gpus.end(), [&](const GpuState& gpu) {
             return gpu.fault == GpuFault::Hung || gpu.telemetry.taken_boottime_ms > hung_ms;
           });
  }));
  EXPECT_EQ(probe->view().driver, DriverState::Ready);
  EXPECT_EQ(probe->view().detail, "");              // it is known: not "cannot be identified"
  EXPECT_EQ(probe->counters().workers_killed, 1u);  // it is not asked again at once
}

TEST_F(GpuProbeTest, AHungGpuComesBackAfterItsRetry) {
  GpuProbeOptions options = gpus_.options();
  options.hung_retry = milliseconds(50);
  options.call_deadline = milliseconds(200);
  const auto probe = start(options);
  ASSERT_TRUE(reads(*probe, 0, GpuFault::None));
  break_gpu(0, SimFault::Hang);
  ASSERT_TRUE(reads(*probe, 0, GpuFault::Hung));
  break_gpu(0, SimFault::None);
  EXPECT_TRUE(reads(*probe, 0, GpuFault::None));
}

TEST_F(GpuProbeTest, KilledWorkersLeaveNothingBehind) {
  GpuProbeOptions options = gpus_.options();
  options.hung_retry = milliseconds(1);
  options.call_deadline = milliseconds(20);
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto probe = start(options);
  ASSERT_TRUE(eventually(*probe, [](const GpuView& view) { return view.gpus.size() == 8; }));
  const auto before = descriptors();
  break_gpu(1, SimFault::Hang);
  ASSERT_TRUE(
      eventually(*probe, [&](const GpuView&) { return probe->counters().workers_killed >= 5; }));
  break_gpu(1, SimFault::None);
  ASSERT_TRUE(reads(*probe, 1, GpuFault::None));
  EXPECT_LE(descriptors(), before + 1);
  EXPECT_TRUE(
      eventually(*probe, [&](const GpuView&) { return probe->counters().workers_abandoned == 0; }));
}

TEST_F(GpuProbeTest, AHangAtInitReadsAsHungGpusAndHeals) {
  GpuProbeOptions options = gpus_.options();
  options.known_file = gpus_.folder() + "/gpus.yaml";
  { ASSERT_EQ(healthy(start(options)->refresh(kTestLimit)), 8u); }
  gpus_.edit([](SimProfile& p) { p.init = SimInitFault::Hang; });
  options.init_deadline = milliseconds(200);
  const auto probe = start(options);
  EXPECT_TRUE(eventually(*probe, [](const GpuView& view) {
    return view.driver == DriverState::Hung && view.gpus.size() == 8 &&
           std::all_of(view.gpus.begin(), view.gpus.end(), [](const GpuState& gpu) {
             return gpu.fault == GpuFault::Hung && gpu.health == 0 &&
                    gpu.telemetry.taken_boottime_ms == 0;
           });
  }));
  EXPECT_EQ(find(probe->view(), uuid(7))->identity.model, "NVIDIA A100 80GB PCIe");
  EXPECT_TRUE(probe->view().simulated);
  gpus_.edit([](SimProfile& p) { p.init = SimInitFault::None; });
  EXPECT_TRUE(eventually(*probe, [](const GpuView& view) { return healthy(view) == 8; }));
}

TEST_F(GpuProbeTest, EndsAtOnceWhileTheDriverHangs) {
  gpus_.edit([](SimProfile& p) { p.init = SimInitFault::Hang; });
  GpuProbeOptions options = gpus_.options();
  options.init_deadline = milliseconds(60'000);
  auto probe = start(options);
  while (probe->counters().workers_started == 0) {
    probe->refresh(milliseconds(1));
  }
  const std::int64_t began_ms = boottime_ms();
  EXPECT_EQ(probe->view().driver, DriverState::Starting);
  probe.reset();
  EXPECT_LT(boottime_ms() - began_ms, 2000);
}

TEST_F(GpuProbeTest, DriverStatesSayWhatIsWrong) {
  struct Case {
    SimInitFault fault;
    DriverState state;
    GpuFault gpu;
  };
  const auto probe = start(gpus_.options());
  ASSERT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  for (const Case& one :
       {Case{SimInitFault::NotLoaded, DriverState::NotLoaded, GpuFault::Unknown},
        Case{SimInitFault::VersionMismatch, DriverState::VersionMismatch, GpuFault::Unknown},
        Case{SimInitFault::Denied, DriverState::Denied, GpuFault::Denied},
        Case{SimInitFault::Unknown, DriverState::Failed, GpuFault::Unknown}}) {
    gpus_.edit([&one](SimProfile& p) { p.init = one.fault; });
    const auto other = start(gpus_.options());
    EXPECT_TRUE(eventually(*other, [&](const GpuView& view) { return view.driver == one.state; }))
        << driver_word(one.state);
    EXPECT_NE(other->view().detail, "");
  }
}

TEST_F(GpuProbeTest, AMissingLibraryOrProfileIsTold) {
  GpuProbeOptions options = gpus_.options();
  options.library = "/nonexistent/libnvml.so";
  const auto none = start(options);
  EXPECT_TRUE(
      eventually(*none, [](const GpuView& view) { return view.driver == DriverState::NoLibrary; }));
  ASSERT_TRUE(replace_file(gpus_.profile_file(), "driver_versoin: 1\n").ok());
  const auto broken = start(gpus_.options());
  EXPECT_TRUE(eventually(*broken, [](const GpuView& view) {
    return view.driver == DriverState::Failed &&
           view.detail.find("did you mean driver_version?") != std::string::npos;
  })) << broken->view().detail;
  options.sample_period = milliseconds(0);
  EXPECT_FALSE(GpuProbe::start(options).ok());
}

TEST_F(GpuProbeTest, AFatalXidGatesForItsProbationAndAJobsOwnDoesNot) {
  GpuProbeOptions options = gpus_.options();
  options.xid_probation = milliseconds(300);
  std::mutex mutex;
  std::vector<GpuEvent> called;
  options.on_event = [&](const GpuEvent& event) {
    const std::lock_guard lock(mutex);
    called.push_back(event);
  };
  const auto probe = start(options);
  ASSERT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  gpus_.edit([](SimProfile& p) { p.gpus[4].xids = {31}; });
  std::vector<GpuEvent> events;
  const auto collected = [&](const GpuView&) {
    for (const GpuEvent& event : probe->take_events().events) {
      events.push_back(event);
    }
    return !events.empty();
  };
  ASSERT_TRUE(eventually(*probe, collected));
  EXPECT_EQ(events[0].uuid, uuid(4));
  EXPECT_EQ(events[0].data, 31u);
  EXPECT_EQ(healthy(probe->view()), 8u);
  gpus_.edit([](SimProfile& p) { p.gpus[4].xids = {31, 79}; });
  EXPECT_TRUE(reads(*probe, 4, GpuFault::Xid));
  EXPECT_TRUE(reads(*probe, 4, GpuFault::None));
  ASSERT_TRUE(eventually(*probe, collected));
  EXPECT_EQ(events.back().data, 79u);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(called, events);
}

TEST_F(GpuProbeTest, EventsThatFailForEverDoNotStopTheSampling) {
  gpus_.edit([](SimProfile& p) { p.events_failing = true; });
  const auto probe = start(gpus_.options());
  EXPECT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  EXPECT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  EXPECT_EQ(probe->counters().workers_started, 1u);
}

TEST_F(GpuProbeTest, AWorkerThatDiesIsReplaced) {
  const auto probe = start(gpus_.options());
  ASSERT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  int killed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const Result<std::string> stat = read_small_file(entry.path().string() + "/stat", 4096);
    // "pid (name) state parent …"
    const std::size_t name = stat ? stat->find("(nvml-worker") : std::string::npos;
    const std::size_t end = name == std::string::npos ? name : stat->find(") ", name);
    const std::string parent = std::to_string(getpid()) + " ";
    if (end != std::string::npos && stat->compare(end + 4, parent.size(), parent) == 0) {
      killed += kill(std::stoi(entry.path().filename().string()), SIGKILL) == 0 ? 1 : 0;
    }
  }
  ASSERT_GE(killed, 1);  // those of earlier tests may not be reaped yet
  EXPECT_TRUE(eventually(*probe, [&](const GpuView& view) {
    return probe->counters().workers_started == 2 && healthy(view) == 8;
  }));
}

TEST_F(GpuProbeTest, AGpuThatCrashesTheDriverIsLeftAloneAndTheOthersGoOn) {
  const auto probe = start(gpus_.options());
  ASSERT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  break_gpu(2, SimFault::Crash);
  ASSERT_TRUE(reads(*probe, 2, GpuFault::Unknown));
  const std::int64_t blamed_ms = boottime_ms();
  EXPECT_TRUE(eventually(*probe, [&](const GpuView& view) {
    return healthy(view) == 7 && find(view, uuid(1))->telemetry.taken_boottime_ms > blamed_ms;
  }));
  EXPECT_LE(probe->counters().workers_started, 4u);
  EXPECT_EQ(probe->counters().workers_killed, 0u);  // none was late
}

TEST_F(GpuProbeTest, GenerationGrowsWithIdentityAndFaultsOnly) {
  std::atomic<int> changes{0};
  GpuProbeOptions options = gpus_.options();
  options.on_change = [&changes](const GpuView&) { ++changes; };
  const auto probe = start(options);
  ASSERT_EQ(healthy(probe->refresh(kTestLimit)), 8u);
  const std::uint64_t before = probe->view().generation;
  const int changes_before = changes;
  gpus_.edit([](SimProfile& p) { p.gpus[0].temperature = 50; });
  const GpuView warmer = probe->refresh(kTestLimit);
  EXPECT_EQ(find(warmer, uuid(0))->telemetry.temperature_c.value(), 50);
  EXPECT_EQ(warmer.generation, before);
  EXPECT_EQ(changes, changes_before);
  break_gpu(0, SimFault::Lost);
  EXPECT_TRUE(reads(*probe, 0, GpuFault::Lost));
  EXPECT_EQ(probe->view().generation, before + 1);
  EXPECT_EQ(changes, changes_before + 1);
}

TEST_F(GpuProbeTest, AGpuThatCannotBeNamedIsReported) {
  break_gpu(6, SimFault::Gone);
  const auto probe = start(gpus_.options());
  const GpuView view = probe->refresh(kTestLimit);
  EXPECT_EQ(view.gpus.size(), 7u);
  EXPECT_NE(view.detail.find("GPU number 6 cannot be identified"), std::string::npos);
}

}  // namespace
}  // namespace bmgpu::agent
