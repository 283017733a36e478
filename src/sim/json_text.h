// Pieces of JSON documents that the commands print.
#pragma once

#include <string>

namespace bmgpu::sim {

// Quoted; printable ASCII as it is, everything else as '?'.
std::string json_string(const std::string& text);
std::string fixed(double value, int decimals);

}  // namespace bmgpu::sim
