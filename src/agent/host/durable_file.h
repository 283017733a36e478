// Files that are replaced in one step and survive a power cut.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::agent {

// Writes `bytes` to a temporary file in the same folder, fsyncs it, renames it over `path` and
// fsyncs the folder. Readers see the old bytes or the new ones, never a mixture. The folder must
// exist. After an error the old file is as it was.
Result<void> replace_file(const std::string& path, std::string_view bytes, unsigned mode = 0644);

// The bytes of a file of at most `bytes_max`. NotFound, ResourceExhausted, Unavailable.
Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);

// mkdir -p with `mode` for the folders that it makes.
Result<void> ensure_folder(const std::string& path, unsigned mode = 0755);

}  // namespace bmgpu::agent
