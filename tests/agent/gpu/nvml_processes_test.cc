#include "agent/gpu/nvml_processes.h"

#include <gtest/gtest.h>

#include <cstring>

namespace bmgpu::agent {
namespace {

std::vector<unsigned char> written(std::size_t stride, const std::vector<std::uint32_t>& pids) {
  std::vector<unsigned char> buffer(64 * kProcessStrideMax, kProcessPoison);
  for (std::size_t i = 0; i < pids.size(); ++i) {
    std::memset(buffer.data() + i * stride, 0, stride);
    std::memcpy(buffer.data() + i * stride, &pids[i], sizeof pids[i]);
  }
  return buffer;
}

bool odd(std::uint32_t pid) { return pid % 2 == 1; }

TEST(NvmlProcessesTest, FindsEachStrideThatDriversHaveUsed) {
  const std::vector<std::uint32_t> pids = {101, 103, 105};
  for (const std::size_t stride : {16, 24, 32}) {
    EXPECT_EQ(parse_processes(written(stride, pids), 3, odd), pids) << stride;
  }
}

TEST(NvmlProcessesTest, AnEndedProcessDoesNotHideTheOthers) {
  const std::vector<std::uint32_t> pids = {100, 103};
  EXPECT_EQ(parse_processes(written(24, pids), 2, odd), pids);
}

TEST(NvmlProcessesTest, CannotTellRatherThanGuess) {
  EXPECT_EQ(parse_processes(written(24, {100, 102}), 2, odd), std::nullopt);  // nobody lives
  EXPECT_EQ(parse_processes(written(20, {101, 103}), 2, odd), std::nullopt);  // no known layout
  EXPECT_EQ(parse_processes(written(24, {101}), 2, odd), std::nullopt);       // fewer than counted
}

TEST(NvmlProcessesTest, NoProcessIsZeroAndNotUnknown) {
  EXPECT_EQ(parse_processes(written(24, {}), 0, odd), std::vector<std::uint32_t>());
}

}  // namespace
}  // namespace bmgpu::agent
