// Many seeds, each group in a process of its own: a broken invariant of core stops only that one,
// and several run at once.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/chaos/run.h"
#include "sim/seeds.h"

namespace bmgpu::sim {

// One seed in kTwiceEvery runs twice and must say the same.
inline constexpr std::uint64_t kTwiceEvery = 20;

// Calls `done` for each seed, in no certain order, on the caller's thread. Linux processes:
// REQUIRES no other thread in this one. `jobs` at once, at least 1.
void run_seeds(SeedRange seeds, unsigned jobs, const WorldOptions& options,
               const std::function<void(const SeedResult&)>& done);

}  // namespace bmgpu::sim
