// The files of a job's working directory, laid out from blobs. Paths and links come from a tenant
// and are data: nothing is ever made, opened or followed outside the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

struct WorkFileEntry {
  std::string path;        // relative, '/'-separated
  std::string sha256_hex;  // empty for a symbolic link
  std::int64_t size = 0;
  std::uint32_t mode = 0644;  // permission bits; set-id and sticky bits are dropped
  std::string link_target;
};

struct WorkdirOptions {
  std::string blob_dir;   // <blob_dir>/<sha256_hex>
  std::string target;     // an empty folder
  std::uint32_t uid = 0;  // owner of everything
  std::uint32_t gid = 0;
};

inline constexpr std::size_t kWorkPathBytesMax = 4096;
inline constexpr std::size_t kWorkFilesMax = 100'000;

// InvalidArgument names the first path or link that leads out, is absolute, empty, too long, holds
// an empty part, "." or "..", or is there twice. DataLoss: a blob is missing or not of its size.
Result<void> lay_out_workdir(const std::vector<WorkFileEntry>& files,
                             const WorkdirOptions& options);

}  // namespace bmgpu::agent
