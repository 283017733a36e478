#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace bmgpu {

void check_failed(const char* what, std::source_location where) {
  std::fprintf(stderr, "check failed: %s (%s:%u, %s)\n", what, where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name());
  std::fflush(stderr);
  std::abort();
}

}  // namespace bmgpu
