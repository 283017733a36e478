#include "agent/node_report.h"

#include <gtest/gtest.h>

#include "bmgpu/v1/agent.pb.h"

namespace bmgpu::agent {
namespace {

GpuState idle_gpu() {
  GpuState gpu;
  gpu.identity = {"GPU-1", "00000000:17:00.0", "123", "NVIDIA A40", GpuForm::Pcie, 46068, 3};
  gpu.health = 100;
  gpu.telemetry.taken_boottime_ms = 5000;
  gpu.telemetry.temperature_c = Reading<std::int32_t>::of(41);
  gpu.telemetry.memory_used_mib = Reading<std::int64_t>::of(0);
  gpu.telemetry.processes = Reading<std::int32_t>::of(0);
  return gpu;
}

TEST(GpuIsCleanTest, AnIdleGpuIs) { EXPECT_TRUE(gpu_is_clean(idle_gpu(), {})); }

TEST(GpuIsCleanTest, NotWhileAnAttemptHoldsIt) {
  EXPECT_FALSE(gpu_is_clean(idle_gpu(), {{"GPU-1"}, {}}));
  EXPECT_TRUE(gpu_is_clean(idle_gpu(), {{"GPU-2"}, {}}));
}

TEST(GpuIsCleanTest, NotByAReadingFromBeforeTheRelease) {
  EXPECT_FALSE(gpu_is_clean(idle_gpu(), {{}, {{"GPU-1", 5001}}}));
  EXPECT_TRUE(gpu_is_clean(idle_gpu(), {{}, {{"GPU-1", 5000}}}));
  GpuState never_read = idle_gpu();
  never_read.telemetry.taken_boottime_ms = 0;
  EXPECT_FALSE(gpu_is_clean(never_read, {}));
}

TEST(GpuIsCleanTest, NotWithForeignMemoryOrProcessesOrUnknownOnes) {
  GpuState gpu = idle_gpu();
  gpu.telemetry.memory_used_mib = Reading<std::int64_t>::of(461);
  EXPECT_FALSE(gpu_is_clean(gpu, {}));
  gpu.telemetry.memory_used_mib = Reading<std::int64_t>::of(460);
  EXPECT_TRUE(gpu_is_clean(gpu, {}));
  gpu.telemetry.memory_used_mib = Reading<std::int64_t>::failed();
  EXPECT_FALSE(gpu_is_clean(gpu, {}));
  gpu = idle_gpu();
  gpu.telemetry.processes = Reading<std::int32_t>::of(1);
  EXPECT_FALSE(gpu_is_clean(gpu, {}));
  gpu.telemetry.processes = Reading<std::int32_t>::absent();
  EXPECT_FALSE(gpu_is_clean(gpu, {}));
}

TEST(GpuIsCleanTest, NotWithAFault) {
  GpuState gpu = idle_gpu();
  gpu.fault = GpuFault::Hung;
  EXPECT_FALSE(gpu_is_clean(gpu, {}));
}

TEST(NodeReportTest, AbsentReadingsStayUnset) {
  GpuView view;
  view.gpus = {idle_gpu()};
  const v1::GpuReport report = make_gpu_report(view, {});
  ASSERT_EQ(report.gpus_size(), 1);
  const v1::GpuCondition& condition = report.gpus(0).condition();
  EXPECT_EQ(condition.temperature_c(), 41);
  EXPECT_FALSE(condition.has_power_mw());
  EXPECT_TRUE(condition.has_memory_used_mib());
  EXPECT_TRUE(condition.ok());
  EXPECT_TRUE(report.gpus(0).clean());
}

TEST(NodeReportTest, TheInventoryDoesNotChangeWithTemperatures) {
  GpuView view;
  view.driver_version = "535.1";
  view.gpus = {idle_gpu()};
  const NodeFacts facts{{4000, 1024, 2048}, "podman 4.3.1", {"a:1"}, {{"disk", true, "fine"}}};
  const v1::Inventory before = make_inventory(view, facts);
  view.gpus[0].telemetry.temperature_c = Reading<std::int32_t>::of(80);
  EXPECT_EQ(make_inventory(view, facts).SerializeAsString(), before.SerializeAsString());
  view.gpus[0].fault = GpuFault::Lost;
  EXPECT_NE(make_inventory(view, facts).SerializeAsString(), before.SerializeAsString());
  EXPECT_EQ(before.gpus(0).form(), "PCIe");
  EXPECT_EQ(before.gpus(0).minor(), 3u);
  EXPECT_EQ(before.gates(0).name(), "disk");
  EXPECT_EQ(before.images(0), "a:1");
}

}  // namespace
}  // namespace bmgpu::agent
