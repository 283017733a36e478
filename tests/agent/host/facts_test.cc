#include "agent/host/facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "agent/host/doctor.h"
#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

class HostFactsTest : public ::testing::Test {
 protected:
  HostFactsTest() {
    root_ = (std::filesystem::temp_directory_path() / "bmgpu-host-XXXXXX").string();
    check(mkdtemp(root_.data()) != nullptr, "no temporary folder");
    put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
    put("/proc/sys/kernel/random/boot_id", "0b0e7f7e-0000-4000-8000-000000000001\n");
  }
  ~HostFactsTest() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    const std::string file = root_ + path;
    ASSERT_TRUE(ensure_folder(file.substr(0, file.rfind('/'))).ok());
    ASSERT_TRUE(replace_file(file, text).ok());
  }
  HostFacts facts() const { return read_host_facts(root_).value(); }

  std::string root_;
};

TEST_F(HostFactsTest, WithoutLimitsTheMachineIsTheLimit) {
  EXPECT_EQ(facts().memory_mib, 16384);
  EXPECT_GE(facts().cpu_millis, 1000);
  EXPECT_EQ(facts().boot_id, "0b0e7f7e-0000-4000-8000-000000000001");
  EXPECT_EQ(facts().cgroup, CgroupVersion::None);
}

TEST_F(HostFactsTest, CgroupV2LimitsOfAnyAncestorCount) {
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(facts().cpu_millis, 500);
  EXPECT_EQ(facts().memory_mib, 1024);
  EXPECT_EQ(facts().cgroup, CgroupVersion::V2);
}

TEST_F(HostFactsTest, CgroupV1LimitsCount) {
  put("/proc/self/cgroup", "9:devices:/x\n4:memory:/x\n3:cpu,cpuacct:/x\n0::/x\n");
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "75000\n");
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(facts().cpu_millis, 750);
  EXPECT_EQ(facts().memory_mib, 2048);
  EXPECT_EQ(facts().cgroup, CgroupVersion::V1);
}

TEST_F(HostFactsTest, NoProcIsAnError) {
  EXPECT_EQ(read_host_facts(root_ + "/nowhere").error().code, ErrorCode::Unavailable);
}

TEST_F(HostFactsTest, ThisMachineHasFacts) {
  const HostFacts here = read_host_facts().value();
  EXPECT_GE(here.cpu_millis, 10);
  EXPECT_GT(here.memory_mib, 64);
  EXPECT_EQ(here.boot_id.size(), 36u);
  EXPECT_FALSE(here.kernel.empty());
  EXPECT_GT(read_disk_facts(root_)->total_mib, 0);
  EXPECT_EQ(read_disk_facts(root_ + "/nowhere").error().code, ErrorCode::NotFound);
  EXPECT_EQ(read_clock_facts().synchronized, read_clock_facts().max_error_us.has_value());
  EXPECT_GT(unix_ms(), boottime_ms());
}

TEST_F(HostFactsTest, DoctorAdvisesExactlyWhereSomethingIsWrong) {
  const std::vector<DoctorCheck> checks = doctor_host(root_);
  EXPECT_EQ(checks.size(), 4u);
  for (const DoctorCheck& check : checks) {
    // One that is ok and has advice is a warning; a clock that nothing keeps right is no more.
    EXPECT_TRUE(check.ok || !check.advice.empty()) << check.name;
    if (check.name == "clock") {
      EXPECT_TRUE(check.ok);
      EXPECT_EQ(check.advice.empty(), read_clock_facts().synchronized);
    }
  }
  EXPECT_FALSE(doctor_host(root_ + "/nowhere").back().ok);
}

}  // namespace
}  // namespace bmgpu::agent
