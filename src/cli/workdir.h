// The folder that `run --workdir` uploads: what is in it, named by content.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/file.h"
#include "wire/hash.h"

namespace bmgpu::cli {

// docs/reference/limits.md lists them for people.
struct WorkdirLimits {
  std::size_t files_max = 10'000;  // links included
  std::int64_t bytes_max = std::int64_t{1} << 30;
  std::size_t path_bytes_max = 1024;
  std::size_t depth_max = 64;
};

struct WorkdirFile {
  std::string path = {};  // relative, '/'-separated
  std::int64_t size = 0;
  std::uint32_t mode = 0;        // permission bits
  wire::Sha256Digest sha256{};   // of a file
  std::string link_target = {};  // of a symbolic link
};

struct Workdir {
  std::string folder;              // as given
  std::vector<WorkdirFile> files;  // sorted by path
  std::vector<LeftOut> left_out;   // sockets, pipes and devices, which have no content
  std::int64_t bytes = 0;
};

// Reads the whole folder. What .gitignore and .bmignore leave out, and every .git, is not entered.
// Names must be UTF-8 without control characters, as the market demands.
// No symbolic link is followed: one that stays inside is kept as a link, one that leads out is an
// error that names it. `on_bytes` is told of bytes read, for a progress bar.
Result<Workdir> scan_workdir(const std::string& folder, const WorkdirLimits& limits,
                             const std::function<void(std::int64_t bytes)>& on_bytes);

// Does a link at `path` (relative to the folder) with this target stay inside the folder? Judged
// by the text alone, since nothing of the folder may be followed.
bool link_stays_inside(std::string_view path, std::string_view target);

}  // namespace bmgpu::cli
