#include "agent/gpu/health.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace bmgpu::agent {
namespace {

HealthInputs healthy() {
  HealthInputs inputs;
  inputs.telemetry.temperature_c = Reading<std::int32_t>::of(40);
  inputs.telemetry.slowdown_c = Reading<std::int32_t>::of(90);
  inputs.telemetry.ecc_uncorrected = Reading<std::int64_t>::of(0);
  inputs.telemetry.row_remap_pending = Reading<bool>::of(false);
  inputs.telemetry.row_remap_failed = Reading<bool>::of(false);
  return inputs;
}

GpuState judged(const HealthInputs& inputs) {
  GpuState gpu;
  judge(inputs, gpu);
  return gpu;
}

TEST(HealthTest, AHealthyGpuHasAllPartsAtHundred) {
  const GpuState gpu = judged(healthy());
  EXPECT_EQ(gpu.fault, GpuFault::None);
  EXPECT_EQ(gpu.health, 100);
  EXPECT_EQ(gpu.parts.size(), 4u);
  EXPECT_EQ(gpu.detail, "");
}

TEST(HealthTest, EachGateVetoesAlone) {
  struct Case {
    GpuFault fault;
    std::function<void(HealthInputs&)> break_it;
  };
  const std::vector<Case> cases = {
      {GpuFault::Lost, [](HealthInputs& i) { i.device = GpuFault::Lost; }},
      {GpuFault::Hung, [](HealthInputs& i) { i.device = GpuFault::Hung; }},
      {GpuFault::Xid, [](HealthInputs& i) { i.fatal_xid = 79; }},
      {GpuFault::Memory,
       [](HealthInputs& i) { i.telemetry.row_remap_failed = Reading<bool>::of(true); }},
      {GpuFault::Memory,
       [](HealthInputs& i) { i.telemetry.row_remap_pending = Reading<bool>::of(true); }},
      {GpuFault::Memory,
       [](HealthInputs& i) { i.telemetry.ecc_uncorrected = Reading<std::int64_t>::of(1); }},
      {GpuFault::Hot,
       [](HealthInputs& i) { i.telemetry.temperature_c = Reading<std::int32_t>::of(90); }},
  };
  for (const Case& one : cases) {
    HealthInputs inputs = healthy();
    one.break_it(inputs);
    const GpuState gpu = judged(inputs);
    EXPECT_EQ(gpu.fault, one.fault) << fault_word(one.fault);
    EXPECT_EQ(gpu.health, 0) << fault_word(one.fault);
  }
}

TEST(HealthTest, WarmthCostsBeforeItVetoes) {
  HealthInputs inputs = healthy();
  inputs.telemetry.temperature_c = Reading<std::int32_t>::of(75);
  EXPECT_EQ(judged(inputs).health, 100);
  inputs.telemetry.temperature_c = Reading<std::int32_t>::of(89);
  const GpuState warm = judged(inputs);
  EXPECT_EQ(warm.health, 44);
  EXPECT_EQ(warm.fault, GpuFault::None);
}

TEST(HealthTest, AbsentCostsNothingAndFailedHalves) {
  HealthInputs inputs;
  EXPECT_EQ(judged(inputs).health, 100);
  inputs.telemetry.temperature_c = Reading<std::int32_t>::failed();
  EXPECT_EQ(judged(inputs).health, 50);
}

TEST(HealthTest, XidsThatBlameTheJobAreNotFatal) {
  for (const std::uint64_t xid : {13, 31, 43, 45, 63, 92, 94, 109, 154, 9999}) {
    EXPECT_FALSE(xid_is_fatal(xid)) << xid;
  }
  for (const std::uint64_t xid : {48, 62, 64, 74, 79, 95, 119, 120, 140, 173}) {
    EXPECT_TRUE(xid_is_fatal(xid)) << xid;
  }
}

}  // namespace
}  // namespace bmgpu::agent
