#include "agent/gpu/nvml_library.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "agent/gpu/nvml_device.h"
#include "agent/gpu/simulated_gpus.h"

namespace bmgpu::agent {
namespace {

TEST(NvmlLibraryTest, SimulatedLibraryHasEverySymbolAndSaysWhatItIs) {
  Result<NvmlLibrary> library = NvmlLibrary::load(SimulatedGpus::library());
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_TRUE(library->simulated());
#define BMGPU_EXPECT_SYMBOL(member, symbol, ...) \
  EXPECT_NE(library->api().member, nullptr) << symbol;
  BMGPU_NVML_FUNCTIONS(BMGPU_EXPECT_SYMBOL)
#undef BMGPU_EXPECT_SYMBOL
}

TEST(NvmlLibraryTest, EverySymbolButFourIsOptionalAndOldNamesServe) {
  Result<NvmlLibrary> library = NvmlLibrary::load(TEST_NVML_MINIMAL);
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_FALSE(library->simulated());
  EXPECT_EQ(library->api().temperature_v, nullptr);
  NvmlSession session(std::move(*library));
  ASSERT_EQ(session.open().status, NvmlStatus::Ok);
  GpuIdentity identity;
  ASSERT_EQ(session.identify(0, identity), NvmlStatus::Ok);
  EXPECT_EQ(identity.uuid, "GPU-old");
  EXPECT_EQ(identity.minor, 7);
  GpuTelemetry telemetry;
  bool partitioned = true;
  ASSERT_EQ(session.sample("GPU-old", telemetry, partitioned), NvmlStatus::Ok);
  EXPECT_TRUE(telemetry.temperature_c.is_absent());
  EXPECT_TRUE(telemetry.memory_used_mib.is_absent());
  EXPECT_TRUE(telemetry.processes.is_absent());
  EXPECT_FALSE(partitioned);
  EXPECT_EQ(session.watch("GPU-old"), NvmlStatus::Absent);
}

TEST(NvmlLibraryTest, RefusesWhatIsNoNvml) {
  EXPECT_EQ(NvmlLibrary::load(TEST_NVML_BROKEN).error().code, ErrorCode::Refused);
  EXPECT_EQ(NvmlLibrary::load("/nonexistent/libnvml.so").error().code, ErrorCode::Unavailable);
}

TEST(NvmlLibraryTest, CodesThatAreActedOnStayApart) {
  const std::vector<nvml::Return> codes = {0, 3, 4, 6, 7, 9, 10, 15, 16, 17, 18, 19, 25, 999};
  std::set<NvmlStatus> states;
  for (const nvml::Return code : codes) {
    states.insert(nvml_status(code));
  }
  EXPECT_EQ(states.size(), codes.size());
  EXPECT_EQ(nvml_status(13), NvmlStatus::Absent);
  EXPECT_EQ(nvml_status(12345), NvmlStatus::Unknown);
}

}  // namespace
}  // namespace bmgpu::agent
