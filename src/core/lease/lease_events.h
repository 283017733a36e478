// Events that several handlers make.
#pragma once

#include <string>

#include "core/core.h"

namespace bmgpu::core {

// The lease is over; metering stopped at `stopped`.
LeaseEnded end_lease(const Lease& lease, EndReason reason, Instant stopped,
                     std::optional<std::int32_t> exit_code, std::string detail);

// `text` cut to what a lease keeps, between two characters.
std::string cut_detail(std::string text);

// The lease whose attempt `token` names, or why there is none.
std::variant<const Lease*, Reason> lease_of_attempt(const State& state, LeaseId id,
                                                    std::uint32_t rank, FencingToken token);

}  // namespace bmgpu::core
