#include "agent/host/facts.h"

#include <sched.h>
#include <sys/statfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kProcBytesMax = std::size_t{1} << 20;
constexpr std::int64_t kMib = std::int64_t{1} << 20;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end == text.data()) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> first_line(const std::string& path) {
  Result<std::string> text = read_small_file(path, kProcBytesMax);
  if (!text) {
    return std::nullopt;
  }
  return text->substr(0, text->find('\n'));
}

// The number behind "name" in a file of "name value" lines.
std::optional<std::int64_t> line_value(const std::string& text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    if (line.starts_with(name)) {
      line.remove_prefix(name.size());
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      return to_integer(line);
    }
    at = end + 1;
  }
  return std::nullopt;
}

// This process's place in a cgroup hierarchy: "/a/b". `controller` empty: the v2 hierarchy.
std::optional<std::string> cgroup_path(const std::string& root, std::string_view controller) {
  Result<std::string> text = read_small_file(root + "/proc/self/cgroup", kProcBytesMax);
  if (!text) {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view line(text->data() + at, end - at);
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const std::string wanted = controller.empty() ? ",," : "," + std::string(controller) + ",";
    if (names.find(wanted) != std::string::npos) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

// Calls `look` with the folder of this process's cgroup in a hierarchy and of each ancestor.
template <typename Look>
void each_cgroup(const std::string& base, std::string path, Look look) {
  while (true) {
    look(base + path);
    if (path.empty() || path == "/") {
      return;
    }
    path.resize(path.rfind('/'));
  }
}

struct Limits {
  std::int64_t cpu_millis;
  std::int64_t memory_bytes;
};

void limit_cpu(Limits& limits, std::optional<std::int64_t> quota,
               std::optional<std::int64_t> period) {
  if (quota && period && *quota > 0 && *period > 0) {
    limits.cpu_millis = std::min(limits.cpu_millis, *quota * 1000 / *period);
  }
}

void limit_memory(Limits& limits, std::optional<std::int64_t> bytes) {
  if (bytes && *bytes > 0) {
    limits.memory_bytes = std::min(limits.memory_bytes, *bytes);
  }
}

std::optional<std::int64_t> file_integer(const std::string& path) {
  const std::optional<std::string> line = first_line(path);
  return line ? to_integer(*line) : std::nullopt;
}

void apply_v2(const std::string& root, Limits& limits) {
  const std::optional<std::string> path = cgroup_path(root, "");
  for (const char* base : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    each_cgroup(root + base, path.value_or(""), [&](const std::string& folder) {
      if (const std::optional<std::string> cpu = first_line(folder + "/cpu.max")) {
        const std::size_t space = std::min(cpu->find(' '), cpu->size());
        limit_cpu(limits, to_integer(*cpu),
                  to_integer(std::string_view(*cpu).substr(std::min(space + 1, cpu->size()))));
      }
      limit_memory(limits, file_integer(folder + "/memory.max"));
    });
  }
}

void apply_v1(const std::string& root, Limits& limits) {
  if (const std::optional<std::string> path = cgroup_path(root, "cpu")) {
    each_cgroup(root + "/sys/fs/cgroup/cpu", *path, [&](const std::string& folder) {
      limit_cpu(limits, file_integer(folder + "/cpu.cfs_quota_us"),
                file_integer(folder + "/cpu.cfs_period_us"));
    });
  }
  if (const std::optional<std::string> path = cgroup_path(root, "memory")) {
    each_cgroup(root + "/sys/fs/cgroup/memory", *path, [&](const std::string& folder) {
      limit_memory(limits, file_integer(folder + "/memory.limit_in_bytes"));
    });
  }
}

CgroupVersion cgroup_version(const std::string& root) {
  const std::optional<std::string> controllers =
      first_line(root + "/sys/fs/cgroup/cgroup.controllers");
  if (controllers && !controllers->empty()) {
    return CgroupVersion::V2;
  }
  return cgroup_path(root, "devices") ? CgroupVersion::V1 : CgroupVersion::None;
}

std::int64_t affinity_cpus() {
  for (int cpus = 1024; cpus <= (1 << 16); cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const int code = sched_getaffinity(0, bytes, set);
    const int count = code == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) {
      return count;
    }
  }
  return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
}

std::string filesystem_name(long type) {
  struct Known {
    long type;
    const char* name;
  };
  static constexpr std::array<Known, 8> kKnown = {{{0xEF53, "ext4"},
                                                   {0x58465342, "xfs"},
                                                   {0x9123683E, "btrfs"},
                                                   {0x01021994, "tmpfs"},
                                                   {0x794C7630, "overlay"},
                                                   {0x6969, "nfs"},
                                                   {0x2FC12FC1, "zfs"},
                                                   {0x65735546, "fuse"}}};
  for (const Known& known : kKnown) {
    if (known.type == type) {
      return known.name;
    }
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%lx", static_cast<unsigned long>(type));
  return text.data();
}

std::int64_t clock_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Result<HostFacts> read_host_facts(const std::string& root_folder) {
  const std::string root = root_folder == "/" ? "" : root_folder;
  HostFacts facts;
  Result<std::string> memory = read_small_file(root + "/proc/meminfo", kProcBytesMax);
  const std::optional<std::int64_t> total_kib =
      memory ? line_value(*memory, "MemTotal:") : std::nullopt;
  if (!total_kib) {
    return Error{ErrorCode::Unavailable, "cannot read MemTotal from " + root + "/proc/meminfo"};
  }
  const std::optional<std::string> boot = first_line(root + "/proc/sys/kernel/random/boot_id");
  if (!boot) {
    return Error{ErrorCode::Unavailable,
                 "cannot read " + root + "/proc/sys/kernel/random/boot_id; is /proc mounted?"};
  }
  Limits limits{affinity_cpus() * 1000, *total_kib * 1024};
  apply_v2(root, limits);
  apply_v1(root, limits);
  facts.cpu_millis = limits.cpu_millis;
  facts.memory_mib = limits.memory_bytes / kMib;
  facts.boot_id = trimmed(*boot);
  facts.cgroup = cgroup_version(root);
  utsname name{};
  if (uname(&name) == 0) {
    facts.kernel = name.release;
    facts.hostname = name.nodename;
  }
  return facts;
}

Result<DiskFacts> read_disk_facts(const std::string& dir) {
  struct statfs status {};
  if (statfs(dir.c_str(), &status) != 0) {
    return Error{errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Unavailable,
                 "cannot ask for the free space of " + dir + ": " + std::strerror(errno)};
  }
  const std::int64_t block = status.f_bsize;
  DiskFacts facts;
  facts.free_mib = static_cast<std::int64_t>(status.f_bavail) * block / kMib;
  facts.total_mib = static_cast<std::int64_t>(status.f_blocks) * block / kMib;
  facts.filesystem = filesystem_name(static_cast<long>(status.f_type));
  return facts;
}

ClockFacts read_clock_facts() {
  ClockFacts facts;
  timex state{};
  const int code = adjtimex(&state);
  if (code < 0) {
    return facts;
  }
  facts.synchronized = code != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  if (facts.synchronized) {
    facts.max_error_us = state.maxerror;
  }
  return facts;
}

std::int64_t boottime_ms() { return clock_ms(CLOCK_BOOTTIME); }
std::int64_t unix_ms() { return clock_ms(CLOCK_REALTIME); }

}  // namespace bmgpu::agent
