// Job files as people and generators write them: understood or refused with a line, never a crash.
#include <string_view>

#include "cli/job_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static_cast<void>(
      bmgpu::cli::parse_job_file({reinterpret_cast<const char*>(data), size}, "job.yaml"));
  return 0;
}
