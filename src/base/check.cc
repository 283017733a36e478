#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace bmgpu {

void check_failed(const char* what, const char* file, int line, const char* function) {
  std::fprintf(stderr, "check failed: %s (%s:%d, %s)\n", what, file, line, function);
  std::fflush(stderr);
  std::abort();
}

}  // namespace bmgpu
