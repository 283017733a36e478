#include "agent/gpu/cdi.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include "agent/gpu/simulated_gpus.h"
#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kMiB = 1 << 20;

class CdiTest : public ::testing::Test {
 protected:
  std::string folder() const { return gpus_.folder() + "/cdi"; }
  SimulatedGpus gpus_{"rtx4090-2.yaml"};  // for its temporary folder
};

CdiSpec simulated() {
  CdiSpec spec;
  spec.kind = "bm-gpu.example/node-3";
  spec.devices = {{"GPU-11111111-2222-3333-4444-555555555555", 16},
                  {"GPU-66666666-7777-8888-9999-aaaaaaaaaaaa", 17}};
  spec.device_dir = "/var/lib/bm-agent/dev";
  return spec;
}

CdiSpec real() {
  CdiSpec spec = simulated();
  spec.kind = "bm-gpu.example/gpu";
  spec.device_dir.clear();
  spec.devices.resize(1);
  spec.driver.nodes = {{"/dev/nvidiactl", 195, 255}, {"/dev/nvidia-uvm", 511, 0}};
  spec.driver.mounts = {{"/usr/lib64/libcuda.so.550.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"}};
  return spec;
}

std::string golden(const std::string& name) {
  return read_small_file(std::string(TEST_GOLDEN) + "/" + name, kMiB).value();
}

TEST_F(CdiTest, DocumentOfSimulatedGpusIsExact) {
  EXPECT_EQ(cdi_document(simulated()).value(), golden("cdi_simulated.json"));
}

TEST_F(CdiTest, DocumentOfRealGpusIsExact) {
  EXPECT_EQ(cdi_document(real()).value(), golden("cdi_real.json"));
}

TEST_F(CdiTest, FileIsWrittenOnceAndRemoved) {
  const std::string path = write_cdi(folder(), simulated()).value();
  EXPECT_EQ(path, folder() + "/bm-gpu.example-node-3.json");
  EXPECT_EQ(read_small_file(path, kMiB).value(), golden("cdi_simulated.json"));
  struct stat first {};
  ASSERT_EQ(stat(path.c_str(), &first), 0);
  EXPECT_EQ(first.st_mode & 07777, 0644u);
  ASSERT_TRUE(write_cdi(folder(), simulated()).ok());
  struct stat second {};
  ASSERT_EQ(stat(path.c_str(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);  // the same bytes are not written again
  CdiSpec fewer = simulated();
  fewer.devices.pop_back();
  ASSERT_TRUE(write_cdi(folder(), fewer).ok());
  ASSERT_EQ(stat(path.c_str(), &second), 0);
  EXPECT_NE(first.st_ino, second.st_ino);
  EXPECT_TRUE(remove_cdi(folder(), simulated().kind).ok());
  EXPECT_TRUE(remove_cdi(folder(), simulated().kind).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder()));  // no temporary file stays
}

TEST_F(CdiTest, AFileThatVanishesIsWrittenAgainAndAnothersIsLeft) {
  const std::string path = write_cdi(folder(), simulated()).value();
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(keep_cdi(folder(), simulated()).value(), path);
  EXPECT_EQ(read_small_file(path, kMiB).value(), golden("cdi_simulated.json"));

  CdiSpec other = simulated();
  other.devices.resize(1);
  ASSERT_TRUE(write_cdi(folder(), other).ok());
  const Result<std::string> kept = keep_cdi(folder(), simulated());
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().code, ErrorCode::AlreadyExists);
  EXPECT_NE(kept.error().message.find("cdi.kind"), std::string::npos) << kept.error().message;
  EXPECT_EQ(read_small_file(path, kMiB).value(), cdi_document(other).value());

  ASSERT_TRUE(remove_cdi(folder(), other.kind).ok());
  EXPECT_TRUE(keep_cdi(folder(), simulated()).ok());
}

TEST_F(CdiTest, RefusesNamesThatEnginesDoNotTake) {
  for (const char* kind : {"", "gpu", "/gpu", "vendor/", "vendor/a.b", "ven dor/gpu", "-v/gpu",
                           "v/gpu/x", "v/../x", "v=1/gpu", "a/gpu", "vendor/g", "1v/gpu"}) {
    EXPECT_FALSE(check_cdi_kind(kind).ok()) << kind;
  }
  for (const char* kind : {"vendor/gpu", "bm-gpu.example/node-3", "ab/cd"}) {
    EXPECT_TRUE(check_cdi_kind(kind).ok()) << kind;
  }
  CdiSpec spec = simulated();
  spec.devices[1].uuid = spec.devices[0].uuid;
  EXPECT_FALSE(cdi_document(spec).ok());
  spec = simulated();
  spec.devices[1].minor = spec.devices[0].minor;
  EXPECT_FALSE(cdi_document(spec).ok());
  spec = simulated();
  spec.devices[0].uuid = "a\"b";
  EXPECT_FALSE(cdi_document(spec).ok());
  spec.devices.clear();
  EXPECT_FALSE(cdi_document(spec).ok());
}

TEST_F(CdiTest, SimulatedDevicesAreMadeKeptAndRemoved) {
  const std::string dir = gpus_.folder() + "/dev";
  const Result<void> made = ensure_simulated_devices(dir, {16, 17});
  if (geteuid() != 0) {
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::PermissionDenied);
    return;
  }
  ASSERT_TRUE(made.ok()) << made.error().message;
  struct stat status {};
  ASSERT_EQ(stat((dir + "/nvidia17").c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(status.st_rdev, makedev(195, 17));
  EXPECT_EQ(status.st_mode & 07777, 0666u);
  ASSERT_TRUE(replace_file(dir + "/nvidia18", "a plain file by accident").ok());
  ASSERT_TRUE(ensure_simulated_devices(dir, {17, 18}).ok());
  EXPECT_NE(stat((dir + "/nvidia16").c_str(), &status), 0);
  ASSERT_EQ(stat((dir + "/nvidia18").c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  ASSERT_TRUE(remove_simulated_devices(dir).ok());
  EXPECT_FALSE(std::filesystem::exists(dir));
  EXPECT_TRUE(remove_simulated_devices(dir).ok());
}

TEST_F(CdiTest, DriverFilesComeWithTheNumbersOfThisBoot) {
  const std::string root = gpus_.folder() + "/root";
  const auto put = [&root](const std::string& path, const std::string& text) {
    ASSERT_TRUE(ensure_folder((root + path).substr(0, (root + path).rfind('/'))).ok());
    ASSERT_TRUE(replace_file(root + path, text).ok());
  };
  put("/proc/devices",
      "Character devices:\n  1 mem\n195 nvidia-frontend\n508 nvidia-uvm\n\nBlock devices:\n  7 "
      "loop\n");
  put("/usr/lib64/libcuda.so.550.1", "");
  put("/usr/lib64/libcuda.so.1", "");
  put("/usr/lib64/libnvidia-ml.so.535.9", "");  // of another version
  put("/usr/bin/nvidia-smi", "");
  const CdiDriverFiles files = find_driver_files(root, "550.1").value();
  EXPECT_EQ(files.nodes, (std::vector<CdiNode>{{"/dev/nvidiactl", 195, 255},
                                               {"/dev/nvidia-uvm", 508, 0},
                                               {"/dev/nvidia-uvm-tools", 508, 1}}));
  EXPECT_EQ(files.mounts,
            (std::vector<CdiMount>{
                {"/usr/lib64/libcuda.so.550.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.550.1"},
                {"/usr/lib64/libcuda.so.550.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"},
                {"/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"}}));
  put("/proc/devices", "Character devices:\n  1 mem\n\nBlock devices:\n195 nvidia\n");
  EXPECT_EQ(find_driver_files(root, "550.1").error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace bmgpu::agent
