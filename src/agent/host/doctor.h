// One line of `bm-agent doctor`.
#pragma once

#include <string>
#include <vector>

namespace bmgpu::agent {

struct DoctorCheck {
  std::string name;  // "gpu driver", "cdi folder", …
  bool ok = false;
  std::string detail;  // what was found
  std::string advice;  // what to do next; empty if ok
};

// Boot id, CPU, memory, cgroups, clock and free space of `scratch_dir`.
std::vector<DoctorCheck> doctor_host(const std::string& scratch_dir);

}  // namespace bmgpu::agent
