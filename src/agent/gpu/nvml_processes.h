// The list of processes on a GPU, read from a driver whose entries may have 16, 24 or 32 bytes.
//
// The same symbol has written all three layouts over the years, and only the bytes tell which. We
// hand in a poisoned buffer and see which layout explains what was written; where more than one
// does, or none, the answer is "cannot tell", never a wrong tenant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace bmgpu::agent {

// What an unwritten byte of the buffer holds.
inline constexpr unsigned char kProcessPoison = 0xA5;
inline constexpr std::size_t kProcessStrideMax = 32;

// The pids of `count` entries in `buffer` (kProcessStrideMax × count bytes or more, poisoned before
// the call). `lives` says whether a pid is a process of this host. nullopt: cannot tell.
std::optional<std::vector<std::uint32_t>> parse_processes(
    std::span<const unsigned char> buffer, std::size_t count,
    const std::function<bool(std::uint32_t)>& lives);

}  // namespace bmgpu::agent
