// One line of `bm-agent doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bmgpu::agent {

struct DoctorCheck {
  std::string name;  // "gpu driver", "cdi folder", …
  bool ok = false;
  std::string detail;  // what was found
  // What to do next. With ok it makes the line a warning: jobs come all the same. Otherwise the
  // node is not offered, or jobs fail on it.
  std::string advice;
};

// Free space below which a node takes no new jobs (its gate `disk`).
inline constexpr std::int64_t kDiskFreeMibMin = 1024;

// Boot id, CPU, memory, cgroups, clock and free space of `scratch_dir`.
std::vector<DoctorCheck> doctor_host(const std::string& scratch_dir);

}  // namespace bmgpu::agent
