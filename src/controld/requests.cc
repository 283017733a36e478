#include "controld/requests.h"

#include <string>

#include "bmgpu/v1/market.pb.h"
#include "core/market/words.h"

namespace bmgpu::controld {

core::Resources resources_of(const v1::Resources& resources) {
  return {resources.gpus(),
          core::normalise_words(resources.gpu()),
          resources.gpu_memory_mib_min(),
          resources.cpu_millis(),
          resources.memory_mib(),
          resources.scratch_mib()};
}

Result<Duration> duration_of(const char* what, std::int64_t ms) {
  if (ms <= 0 || Duration(ms) > core::Limits::kLeaseMax) {
    return Error{ErrorCode::InvalidArgument,
                 std::string(what) + " must be above 0 and at most 30 days"};
  }
  return Duration(ms);
}

}  // namespace bmgpu::controld
