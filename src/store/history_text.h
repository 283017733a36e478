// Events in one line of words for people. Private to src/store.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/events.h"

namespace bmgpu::store {

inline constexpr std::size_t kTextBytesMax = 500;

// No line breaks, at most kTextBytesMax bytes. Amounts are in `currency`.
std::string describe(const core::Event& event, std::string_view currency);

}  // namespace bmgpu::store
