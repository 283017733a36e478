// A container's cgroup, by its files: freezing, killing and counting go nowhere else. cgroup v1,
// v2, and hybrid machines (v1 controllers beside a v2 tree) look the same from outside.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

// Where the trees are mounted; empty = not.
struct CgroupTrees {
  std::string freezer;  // v1
  std::string memory;   // v1
  std::string devices;  // v1
  std::string named;    // v1 name=systemd
  std::string unified;  // v2
  bool v1() const { return !freezer.empty(); }
};

CgroupTrees cgroup_trees();
// "v1", "v2" or "hybrid"; empty if there are no cgroups.
std::string cgroup_version(const CgroupTrees& trees);
// The trees by which a service manager decides what belongs to a service.
std::vector<std::string> service_cgroup_trees();

// The cgroup of a process, as JobCgroup takes it; empty if it has none of its own.
std::string cgroup_of(int pid, const CgroupTrees& trees);

class JobCgroup {
 public:
  // `path` as the engine names it: "/bmgpu-…/libpod-<id>". The cgroup need not exist any more.
  JobCgroup(CgroupTrees trees, std::string path);

  // Every process of it and below it.
  std::vector<int> pids() const;

  // Stops every process and returns once all are stopped.
  Result<void> freeze(std::chrono::milliseconds deadline) const;
  Result<void> thaw() const;
  // No process runs one more instruction after the first step: freeze, SIGKILL to every pid, thaw
  // (v1), or cgroup.kill (v2). Returns once none is left; nothing there is fine.
  Result<void> kill(std::chrono::milliseconds deadline) const;

  // Processes that the kernel killed at the memory limit so far; 0 if unknown.
  std::uint64_t oom_kills() const;

 private:
  std::string job_dir() const;
  CgroupTrees trees_;
  std::string path_;
};

// Removes an empty cgroup and those below it from every tree. Best effort.
void remove_cgroup(const std::string& path);

}  // namespace bmgpu::agent
