// A lease's scratch space: a sparse file with an ext4 file system, mounted through a loop device.
// It bounds what a job can write, and removing it is removing one file.
//
// The loop device frees itself (autoclear) when its last mount goes, so a shim that is killed
// between any two steps leaks none. A mount namespace of somebody else may hold a copy of it, and
// with it device and disk space: removal is done only once the device is seen to be free. The size
// is a bound, not a reservation: the file takes disk only as it is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

inline constexpr std::int64_t kScratchMibMin = 16;

// The folders of a new file system, mode 1777.
inline constexpr const char* kScratchFolders[] = {"data", "data/home", "tmp", "workspace"};

// Makes a sparse file of that size with a file system that holds these folders. Replaces what is
// there.
Result<void> format_scratch(const std::string& image, std::int64_t size_mib);

// Mounts `image` on the folder `target` (created), nosuid and nodev.
Result<void> mount_scratch(const std::string& image, const std::string& target);

// Nothing is attached to `image` any more, which may be removed already. Unavailable names device
// and holder.
Result<void> scratch_released(const std::string& image);

// Unmounts, removes image and folder, and waits up to 10 s until the loop device is free. What is
// missing is fine.
Result<void> remove_scratch(const std::string& image, const std::string& target);

// Formatted files kept ready: <pool>/<size>/<n>.img.
// Moves one of that size to `image`; NotFound if there is none (format one then).
Result<void> take_scratch(const std::string& pool, std::int64_t size_mib, const std::string& image);
Result<void> refill_scratch_pool(const std::string& pool,
                                 const std::vector<std::int64_t>& sizes_mib, int count);

}  // namespace bmgpu::agent
