#include "agent/gpu/nvml_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/gpu/simulated_gpus.h"
#include "agent/host/facts.h"

namespace bmgpu::agent {
namespace {

// A driver in this very process: nothing here hangs.
class NvmlDeviceTest : public ::testing::Test {
 protected:
  void open(const std::string& profile, const std::function<void(SimProfile&)>& change = {}) {
    gpus_ = std::make_unique<SimulatedGpus>(profile);
    if (change) {
      gpus_->edit(change);
    }
    setenv("BMGPU_NVML_SIM_PROFILE", gpus_->profile_file().c_str(), 1);
    session_ = std::make_unique<NvmlSession>(NvmlLibrary::load(SimulatedGpus::library()).value());
    opened_ = session_->open();
  }

  GpuIdentity identity(std::uint32_t index) {
    GpuIdentity identity;
    EXPECT_EQ(session_->identify(index, identity), NvmlStatus::Ok);
    return identity;
  }
  GpuTelemetry sample(std::uint32_t index, NvmlStatus expected = NvmlStatus::Ok) {
    GpuTelemetry telemetry;
    EXPECT_EQ(session_->sample(sim_uuid(gpus_->profile(), index), telemetry, partitioned_),
              expected);
    return telemetry;
  }

  std::unique_ptr<SimulatedGpus> gpus_;
  std::unique_ptr<NvmlSession> session_;
  NvmlSession::Opened opened_;
  bool partitioned_ = false;
};

TEST_F(NvmlDeviceTest, IdentityIsUuidPciAddressAndSerial) {
  open("a100-8.yaml", [](SimProfile& p) { p.minor_base = 64; });
  ASSERT_EQ(opened_.status, NvmlStatus::Ok);
  EXPECT_EQ(opened_.count, 8u);
  EXPECT_EQ(opened_.driver_version, "550.127.08-simulated");
  EXPECT_TRUE(session_->simulated());
  const GpuIdentity gpu = identity(3);
  EXPECT_EQ(gpu.uuid, sim_uuid(gpus_->profile(), 3));
  EXPECT_EQ(gpu.serial, sim_serial(gpus_->profile(), 3));
  EXPECT_EQ(gpu.pci_bus_id, "00000000:4D:00.0");
  EXPECT_EQ(gpu.model, "NVIDIA A100 80GB PCIe");
  EXPECT_EQ(gpu.form, GpuForm::Pcie);
  EXPECT_EQ(gpu.memory_mib, 81920);
  EXPECT_EQ(gpu.minor, 67);
}

TEST_F(NvmlDeviceTest, FormIsToldByTheModel) {
  EXPECT_EQ(form_of("NVIDIA H200"), GpuForm::Sxm);
  EXPECT_EQ(form_of("NVIDIA H200 NVL"), GpuForm::Pcie);
  EXPECT_EQ(form_of("NVIDIA A100-SXM4-80GB"), GpuForm::Sxm);
  EXPECT_EQ(form_of("NVIDIA A40"), GpuForm::Pcie);
  EXPECT_EQ(form_of("NVIDIA GeForce RTX 4090"), GpuForm::Pcie);
  EXPECT_EQ(form_of("Something New"), GpuForm::Unknown);
}

TEST_F(NvmlDeviceTest, AbsentZeroAndFailedAreThreeThings) {
  open("rtx4090-2.yaml", [](SimProfile& p) { p.gpus[1].fault = SimFault::Garbage; });
  EXPECT_EQ(identity(0).serial, "");
  const GpuTelemetry good = sample(0);
  EXPECT_TRUE(good.ecc_uncorrected.is_absent());
  EXPECT_TRUE(good.row_remap_failed.is_absent());
  EXPECT_EQ(good.utilization_percent.value(), 0);
  EXPECT_EQ(good.memory_used_mib.value(), 0);
  EXPECT_EQ(good.processes.value(), 0);
  EXPECT_EQ(good.temperature_c.value(), 36);
  const GpuTelemetry garbage = sample(1);
  EXPECT_TRUE(garbage.utilization_percent.is_failed());
  EXPECT_TRUE(garbage.temperature_c.is_failed());
  EXPECT_TRUE(garbage.power_mw.is_failed());
  EXPECT_TRUE(garbage.energy_mj.is_failed());
  EXPECT_TRUE(garbage.memory_used_mib.is_failed());
}

TEST_F(NvmlDeviceTest, EachNewFunctionHasAnOlderOneToFallBackTo) {
  open("a100-8.yaml", [](SimProfile& p) {
    p.absent = {"nvmlDeviceGetTemperatureV", "nvmlDeviceGetMemoryInfo_v2",
                "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetComputeRunningProcesses_v3"};
    p.gpus[0].memory_used_mib = 1000;
  });
  EXPECT_EQ(identity(0).pci_bus_id, "00000000:17:00.0");
  const GpuTelemetry telemetry = sample(0);
  EXPECT_EQ(telemetry.temperature_c.value(), 33);
  EXPECT_EQ(telemetry.memory_used_mib.value(), 1589);  // the old one counts the driver's reserve
  EXPECT_EQ(telemetry.processes.value(), 0);
}

TEST_F(NvmlDeviceTest, AFunctionThatIsMissingAltogetherReadsAbsent) {
  open("a100-8.yaml", [](SimProfile& p) {
    p.absent = {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetUtilizationRates"};
  });
  const GpuTelemetry telemetry = sample(0);
  EXPECT_TRUE(telemetry.energy_mj.is_absent());
  EXPECT_TRUE(telemetry.utilization_percent.is_absent());
  EXPECT_EQ(telemetry.power_mw.value(), 46000);
}

TEST_F(NvmlDeviceTest, DeviceFaultsKeepTheirNames) {
  open("a100-8.yaml", [](SimProfile& p) {
    p.gpus[1].fault = SimFault::Lost;
    p.gpus[2].fault = SimFault::ResetRequired;
    p.gpus[3].fault = SimFault::Denied;
    p.gpus[4].fault = SimFault::Blocked;
    p.gpus[5].fault = SimFault::Unknown;
    p.gpus[6].fault = SimFault::Gone;
  });
  sample(0);
  sample(1, NvmlStatus::Lost);
  sample(2, NvmlStatus::ResetRequired);
  sample(3, NvmlStatus::Denied);
  sample(4, NvmlStatus::Blocked);
  sample(5, NvmlStatus::Unknown);
  sample(6, NvmlStatus::NotFound);
}

TEST_F(NvmlDeviceTest, LiveEditsAreSeenAtOnce) {
  open("h200-4.yaml");
  EXPECT_EQ(sample(2).temperature_c.value(), 30);
  gpus_->edit([](SimProfile& p) {
    p.gpus[2].temperature = 91;
    p.gpus[2].power_mw = 650'000;
  });
  EXPECT_EQ(sample(2).temperature_c.value(), 91);
  EXPECT_EQ(sample(2).power_mw.value(), 650'000);
  EXPECT_EQ(sample(1).temperature_c.value(), 29);
}

TEST_F(NvmlDeviceTest, ABrokenEditLeavesTheLastGoodProfile) {
  open("h200-4.yaml");
  ASSERT_EQ(sample(0).temperature_c.value(), 28);
  ASSERT_EQ(truncate(gpus_->profile_file().c_str(), 40), 0);
  GpuTelemetry telemetry;
  const SimProfile shipped = SimulatedGpus("h200-4.yaml").profile();
  EXPECT_EQ(session_->sample(sim_uuid(shipped, 0), telemetry, partitioned_), NvmlStatus::Ok);
  EXPECT_EQ(telemetry.temperature_c.value(), 28);
}

TEST_F(NvmlDeviceTest, EnergyNeverFallsAndFollowsPower) {
  open("a40-8.yaml", [](SimProfile& p) { p.gpus[0].power_mw = 0; });
  const std::int64_t idle = *sample(0).energy_mj.value();
  EXPECT_EQ(*sample(0).energy_mj.value(), idle);
  gpus_->edit([](SimProfile& p) { p.gpus[0].power_mw = 5'000'000; });
  std::int64_t last = idle;
  const std::int64_t began_ms = boottime_ms();
  while (last == idle && boottime_ms() - began_ms < kTestLimit.count()) {
    last = *sample(0).energy_mj.value();
  }
  EXPECT_GT(last, idle);
  gpus_->edit([](SimProfile& p) { p.gpus[0].power_mw = 0; });
  const std::int64_t stopped = *sample(0).energy_mj.value();
  EXPECT_GE(stopped, last);
  EXPECT_EQ(*sample(0).energy_mj.value(), stopped);
  gpus_->edit([](SimProfile& p) { p.gpus[0].energy_mj = 1000; });
  EXPECT_EQ(*sample(0).energy_mj.value(), stopped + 1000);
}

TEST_F(NvmlDeviceTest, ProcessesAreCountedAtAnyStride) {
  open("a100-8.yaml");
  for (const std::int64_t stride : {16, 24, 32}) {
    gpus_->edit([stride](SimProfile& p) {
      p.process_stride = stride;
      p.gpus[0].processes = {{getpid(), 100}, {1, 200}};
    });
    EXPECT_EQ(sample(0).processes.value(), 2) << stride;
  }
  // A pid that cannot live here: nobody can tell, and that is not zero.
  gpus_->edit([](SimProfile& p) { p.gpus[0].processes = {{(1 << 22), 100}}; });
  EXPECT_TRUE(sample(0).processes.is_failed());
}

TEST_F(NvmlDeviceTest, AListLongerThanTheBufferIsReadWhole) {
  open("a100-8.yaml", [](SimProfile& p) {
    p.gpus[0].processes.assign(200, SimProcess{getpid(), 1});
  });
  EXPECT_EQ(sample(0).processes.value(), 200);
}

TEST_F(NvmlDeviceTest, MigIsNoticedWhereItExists) {
  open("a100-8.yaml", [](SimProfile& p) {
    p.gpus[1].mig = SimMig::On;
    p.gpus[2].mig = SimMig::Unsupported;
  });
  sample(0);
  EXPECT_FALSE(partitioned_);
  sample(1);
  EXPECT_TRUE(partitioned_);
  sample(2);
  EXPECT_FALSE(partitioned_);
}

TEST_F(NvmlDeviceTest, EventsComeOnceAndOnlyFromRegistrationOn) {
  open("a100-8.yaml", [](SimProfile& p) { p.gpus[1].xids = {31}; });
  ASSERT_EQ(session_->watch(sim_uuid(gpus_->profile(), 1)), NvmlStatus::Ok);
  GpuEvent event;
  EXPECT_EQ(session_->wait_event(0, event), NvmlStatus::Timeout);
  gpus_->edit([](SimProfile& p) {
    p.gpus[1].xids = {31, 79, 31};
    p.gpus[1].fault = SimFault::Lost;  // it no longer tells its name
    p.gpus[2].xids = {13};             // nobody watches this one
  });
  for (const std::uint64_t xid : {79, 31}) {
    ASSERT_EQ(session_->wait_event(0, event), NvmlStatus::Ok);
    EXPECT_EQ(event.kind, GpuEventKind::Xid);
    EXPECT_EQ(event.data, xid);
    EXPECT_EQ(event.uuid, sim_uuid(gpus_->profile(), 1));
    EXPECT_GT(event.boottime_ms, 0);
  }
  EXPECT_EQ(session_->wait_event(0, event), NvmlStatus::Timeout);
  gpus_->edit([](SimProfile& p) { p.events_failing = true; });
  EXPECT_EQ(session_->wait_event(60'000, event), NvmlStatus::Lost);
}

TEST_F(NvmlDeviceTest, InitFailuresAreTold) {
  struct Case {
    SimInitFault fault;
    DriverState state;
  };
  for (const Case& one : {Case{SimInitFault::NotLoaded, DriverState::NotLoaded},
                          Case{SimInitFault::VersionMismatch, DriverState::VersionMismatch},
                          Case{SimInitFault::Denied, DriverState::Denied},
                          Case{SimInitFault::Unknown, DriverState::Failed},
                          Case{SimInitFault::None, DriverState::Ready}}) {
    open("rtx4090-2.yaml", [&one](SimProfile& p) { p.init = one.fault; });
    EXPECT_EQ(driver_state(opened_.status), one.state);
  }
}

TEST_F(NvmlDeviceTest, TopologyTellsNeighbours) {
  open("a100-8.yaml");
  const NvmlLibrary library = NvmlLibrary::load(SimulatedGpus::library()).value();
  nvml::Device first = nullptr;
  std::vector<std::uint32_t> levels;
  ASSERT_EQ(library.api().handle_by_index(0, &first), nvml::kSuccess);
  for (const std::uint32_t other : {1, 2, 4}) {
    nvml::Device device = nullptr;
    std::uint32_t level = 0;
    ASSERT_EQ(library.api().handle_by_index(other, &device), nvml::kSuccess);
    ASSERT_EQ(library.api().common_ancestor(first, device, &level), nvml::kSuccess);
    levels.push_back(level);
  }
  EXPECT_EQ(levels, (std::vector<std::uint32_t>{10, 30, 50}));
}

TEST_F(NvmlDeviceTest, ForeignHandlesAndUnknownStructVersionsAreRefused) {
  open("a100-8.yaml");
  const NvmlLibrary library = NvmlLibrary::load(SimulatedGpus::library()).value();
  std::uint32_t value = 0;
  EXPECT_EQ(library.api().power(&value, &value), nvml::kInvalidArgument);
  nvml::Device device = nullptr;
  ASSERT_EQ(library.api().handle_by_index(0, &device), nvml::kSuccess);
  nvml::MemoryV2 memory{};
  memory.version = nvml::struct_version<nvml::MemoryV2>(3);
  EXPECT_EQ(library.api().memory_v2(device, &memory), nvml::kArgumentVersionMismatch);
}

}  // namespace
}  // namespace bmgpu::agent
