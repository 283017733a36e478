#include "agent/gpu/sim_profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "agent/gpu/simulated_gpus.h"
#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

std::string refusal(const std::string& text) {
  SimulatedGpus gpus("rtx4090-2.yaml");
  EXPECT_TRUE(replace_file(gpus.profile_file(), text).ok());
  const Result<SimProfile> loaded = load_sim_profile(gpus.profile_file());
  if (loaded.ok()) {
    return "accepted";
  }
  EXPECT_EQ(loaded.error().code, ErrorCode::InvalidArgument);
  return loaded.error().message.substr(gpus.folder().size() + 1);
}

TEST(SimProfileTest, ShippedProfilesAreNodesOfTheirKind) {
  struct Node {
    const char* file;
    std::size_t gpus;
    const char* model;
  };
  std::set<std::string> uuids;
  std::set<std::int32_t> minors;
  std::size_t total = 0;
  for (const Node& node :
       {Node{"a100-8.yaml", 8, "NVIDIA A100 80GB PCIe"}, Node{"a40-8.yaml", 8, "NVIDIA A40"},
        Node{"h200-4.yaml", 4, "NVIDIA H200"},
        Node{"rtx4090-2.yaml", 2, "NVIDIA GeForce RTX 4090"}}) {
    const SimProfile profile = SimulatedGpus(node.file).profile();
    ASSERT_EQ(profile.gpus.size(), node.gpus) << node.file;
    total += node.gpus;
    for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
      EXPECT_EQ(profile.gpus[i].model, node.model);
      uuids.insert(sim_uuid(profile, i));
      minors.insert(sim_minor(profile, i));
    }
  }
  EXPECT_EQ(uuids.size(), total);  // several nodes on one host do not collide
  EXPECT_EQ(minors.size(), total);
}

TEST(SimProfileTest, TextAndProfileRoundTrip) {
  SimulatedGpus gpus("a100-8.yaml");
  SimProfile profile = gpus.profile();
  profile.absent = {"nvmlDeviceGetTemperatureV"};
  profile.init = SimInitFault::VersionMismatch;
  profile.process_stride = 32;
  profile.events_failing = true;
  profile.gpus[2].fault = SimFault::ResetRequired;
  profile.gpus[2].xids = {31, 79};
  profile.gpus[3].processes = {{1234, 512}, {99, 0}};
  profile.gpus[4].row_remap_pending = true;
  profile.gpus[5].mig = SimMig::On;
  profile.gpus[6].serial = "0\"\\1";
  profile.gpus[7].minor = 200;
  ASSERT_TRUE(save_sim_profile(gpus.profile_file(), profile).ok());
  EXPECT_EQ(gpus.profile(), profile);
}

TEST(SimProfileTest, AnotherSeedIsAnotherNode) {
  SimProfile profile = SimulatedGpus("a40-8.yaml").profile();
  const std::string uuid = sim_uuid(profile, 0);
  const std::string serial = sim_serial(profile, 0);
  EXPECT_EQ(uuid.size(), std::string("GPU-00000000-0000-0000-0000-000000000000").size());
  profile.seed += 1;
  EXPECT_NE(sim_uuid(profile, 0), uuid);
  EXPECT_NE(sim_serial(profile, 0), serial);
}

TEST(SimProfileTest, NamesTheNearestKeyAndTheLine) {
  EXPECT_EQ(refusal("driver_version: \"1\"\ngpus:\n  - {model: X, memory_mib: 1, temprature: 3}\n"),
            "profile.yaml:3: gpus[0].temprature: unknown key; did you mean gpus[0].temperature?");
  EXPECT_NE(refusal("driver_version: \"1\"\nabsent: [nvmlDeviceGetPowerUsag]\n")
                .find("did you mean nvmlDeviceGetPowerUsage?"),
            std::string::npos);
  EXPECT_NE(refusal("driver_version: \"1\"\ndefaults: {fault: melted}\n").find("reset_required"),
            std::string::npos);
}

TEST(SimProfileTest, RefusesWhatNoDriverWouldReport) {
  const std::string head = "driver_version: \"1\"\ngpus:\n";
  EXPECT_EQ(refusal(head + "  - {model: X, memory_mib: 100}\n"), "accepted");
  EXPECT_NE(refusal(head + "  - {model: X, memory_mib: 100, memory_used_mib: 101}\n"), "accepted");
  EXPECT_NE(refusal(head + "  - {model: \"\", memory_mib: 100}\n"), "accepted");
  EXPECT_NE(refusal(head + "  - {model: X, memory_mib: 1, minor: 3}\n"
                           "  - {model: X, memory_mib: 1, minor: 3}\n"),
            "accepted");
  EXPECT_NE(refusal(head + "  - {model: X, memory_mib: 1, xids: [0]}\n"), "accepted");
  EXPECT_NE(refusal("process_stride: 20\n" + head + "  - {model: X, memory_mib: 1}\n"), "accepted");
  EXPECT_NE(refusal("minor_base: 254\n" + head +
                    "  - {model: X, memory_mib: 1}\n"
                    "  - {model: X, memory_mib: 1}\n"),
            "accepted");
}

TEST(SimProfileTest, ARefusedEditChangesNothing) {
  SimulatedGpus gpus("h200-4.yaml");
  const std::string before = read_small_file(gpus.profile_file(), 1 << 20).value();
  const Result<void> edited = edit_sim_profile(
      gpus.profile_file(), [](SimProfile& p) { p.gpus[0].memory_used_mib = 1'000'000; });
  ASSERT_FALSE(edited.ok());
  EXPECT_EQ(read_small_file(gpus.profile_file(), 1 << 20).value(), before);
}

}  // namespace
}  // namespace bmgpu::agent
