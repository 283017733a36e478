#include "agent/host/doctor.h"

#include "agent/host/facts.h"

namespace bmgpu::agent {
namespace {

constexpr std::int64_t kScratchMibWanted = 10 * 1024;

const char* cgroup_word(CgroupVersion version) {
  switch (version) {
    case CgroupVersion::V1:
      return "v1";
    case CgroupVersion::V2:
      return "v2";
    case CgroupVersion::None:
      return "none";
  }
  return "";
}

DoctorCheck check_scratch(const std::string& dir) {
  Result<DiskFacts> disk = read_disk_facts(dir);
  if (!disk) {
    return {"scratch space", false, disk.error().message, "create the folder or name another one"};
  }
  const bool some = disk->free_mib >= kDiskFreeMibMin;
  const bool enough = disk->free_mib >= kScratchMibWanted;
  return {"scratch space", some,
          std::to_string(disk->free_mib) + " MiB free of " + std::to_string(disk->total_mib) +
              " MiB in " + dir + " (" + disk->filesystem + ")",
          enough ? ""
          : some ? "free at least 10 GiB, or jobs get almost no scratch space"
                 : "free at least 1 GiB, or the node is not offered"};
}

DoctorCheck check_clock() {
  const ClockFacts clock = read_clock_facts();
  if (!clock.synchronized) {
    return {"clock", true, "the kernel does not know whether its wall clock is right",
            "run chrony or systemd-timesyncd: nothing keeps this clock right, and once it is more "
            "than 30 s off the market's the node is not offered"};
  }
  return {"clock", true,
          "synchronised" + (clock.max_error_us
                                ? ", at most " + std::to_string(*clock.max_error_us) + " us off"
                                : std::string()),
          ""};
}

}  // namespace

std::vector<DoctorCheck> doctor_host(const std::string& scratch_dir) {
  std::vector<DoctorCheck> checks;
  Result<HostFacts> facts = read_host_facts();
  if (!facts) {
    checks.push_back({"host", false, facts.error().message, "mount /proc and /sys"});
  } else {
    checks.push_back({"host", true,
                      "kernel " + facts->kernel + ", " + std::to_string(facts->cpu_millis) +
                          " CPU millis, " + std::to_string(facts->memory_mib) +
                          " MiB memory, boot " + facts->boot_id,
                      ""});
    const bool found = facts->cgroup != CgroupVersion::None;
    checks.push_back({"cgroups", found, cgroup_word(facts->cgroup),
                      found ? "" : "mount cgroup v2, or v1 with the devices controller"});
  }
  checks.push_back(check_clock());
  checks.push_back(check_scratch(scratch_dir));
  return checks;
}

}  // namespace bmgpu::agent
