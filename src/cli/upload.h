// Brings a folder's contents to the market: only what it does not have yet.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/workdir.h"

namespace bmgpu::v1 {
class JobSpec;
}

namespace bmgpu::cli {

class Context;

struct Uploaded {
  std::size_t files = 0;  // sent just now
  std::int64_t bytes = 0;
};

// Scans with a progress line on a terminal, and says what is left out.
Result<Workdir> scan_with_progress(Context& context, const std::string& folder);

// Asks which contents are missing and sends those, with a progress bar on a terminal.
Result<Uploaded> upload(Context& context, const Workdir& workdir);

void fill(const Workdir& workdir, v1::JobSpec& job);

}  // namespace bmgpu::cli
