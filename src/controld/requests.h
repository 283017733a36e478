// From wire requests to core's values: the conversions that several handlers share.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "core/types.h"

namespace bmgpu::v1 {
class Resources;
}

namespace bmgpu::controld {

// REQUIRES: check_resources().
core::Resources resources_of(const v1::Resources& resources);

// `what` is named in the message. Core checks the exact range.
Result<Duration> duration_of(const char* what, std::int64_t ms);

}  // namespace bmgpu::controld
