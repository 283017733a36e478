// Facts of the machine that an agent runs on, read from /proc, /sys and the kernel.
//
// All functions may be called from any thread and take microseconds; none asks the network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace bmgpu::agent {

enum class CgroupVersion : std::uint8_t { None, V1, V2 };

struct HostFacts {
  // CPU time and memory that this process may use: the machine's, or less where an affinity mask or
  // a cgroup (v1 or v2, any ancestor) says so.
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::string boot_id;
  std::string kernel;  // "6.1.0-18-amd64"
  std::string hostname;
  CgroupVersion cgroup = CgroupVersion::None;
};

// `root` is "/" in production; tests give a folder that holds proc/ and sys/. Affinity, kernel and
// host name always come from the running system.
Result<HostFacts> read_host_facts(const std::string& root = "/");

struct DiskFacts {
  std::int64_t free_mib = 0;  // usable by this process
  std::int64_t total_mib = 0;
  std::string filesystem;  // "ext4", "overlay", …; "0x…" if not known by name
};
// Of the file system that holds `dir`. NotFound if `dir` does not exist.
Result<DiskFacts> read_disk_facts(const std::string& dir);

// The kernel's own view of the wall clock (adjtimex). In a container or VM without a time daemon
// `synchronized` is false although the clock may be right: compare with bmd before judging.
struct ClockFacts {
  bool synchronized = false;
  std::optional<std::int64_t> max_error_us;  // unset: the kernel does not know
};
ClockFacts read_clock_facts();

// CLOCK_BOOTTIME and the wall clock, in milliseconds.
std::int64_t boottime_ms();
std::int64_t unix_ms();

}  // namespace bmgpu::agent
