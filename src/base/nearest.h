// The candidate that a mistyped word most likely meant, for "did you mean" in error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bmgpu {

// The candidate with the smallest edit distance to `word` (insert, delete, replace, swap of
// neighbours; case counts half as much as a letter); the first one of equals. Empty if none is
// closer than half of the longer word. Words over 64 bytes have no nearest one.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace bmgpu
