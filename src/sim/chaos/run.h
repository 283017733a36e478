// One seed: 30 simulated minutes. 20 with faults in which nothing may ever be wrong, then 10
// without in which everything has to come to rest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/chaos/world.h"
#include "sim/engine/verdict.h"

namespace bmgpu::sim {

inline constexpr Duration kSafetyPhase = minutes(20);
inline constexpr Duration kLivenessPhase = minutes(10);

struct SeedResult {
  std::uint64_t seed = 0;
  std::uint64_t digest = 0;  // of everything that happened, and of the last state
  std::uint64_t actions = 0;
  std::uint64_t core_events = 0;
  std::optional<Violation> violation;
  std::vector<std::string> trace;  // the last things that happened, if a rule was broken
};

// The same for a seed on every machine. A broken invariant of core stops the process: whoever wants
// to say what led to it catches SIGABRT and asks last_trace().
SeedResult run_seed(std::uint64_t seed, const WorldOptions& options);

// Of the world that this process runs now, for whoever has to explain an abort.
std::vector<std::string> last_trace();

}  // namespace bmgpu::sim
