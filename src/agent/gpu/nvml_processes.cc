#include "agent/gpu/nvml_processes.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace bmgpu::agent {
namespace {

// How many bytes from the start were written. The last written byte may equal the poison only with
// a chance of 1 in 256 per entry, and then no layout fits exactly.
std::size_t written_bytes(std::span<const unsigned char> buffer) {
  std::size_t size = buffer.size();
  while (size > 0 && buffer[size - 1] == kProcessPoison) {
    --size;
  }
  return size;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> parse_processes(
    std::span<const unsigned char> buffer, std::size_t count,
    const std::function<bool(std::uint32_t)>& lives) {
  constexpr std::array<std::size_t, 3> kStrides = {16, 24, 32};
  if (count == 0) {
    return std::vector<std::uint32_t>();
  }
  const std::size_t written = written_bytes(buffer);
  std::optional<std::vector<std::uint32_t>> found;
  for (const std::size_t stride : kStrides) {
    if (written != stride * count) {
      continue;
    }
    std::vector<std::uint32_t> pids(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&pids[i], buffer.data() + i * stride, sizeof pids[i]);
    }
    // A process may have ended since; all of them having ended means that these are no pids.
    if (std::any_of(pids.begin(), pids.end(), lives)) {
      found = std::move(pids);
    }
  }
  return found;
}

}  // namespace bmgpu::agent
