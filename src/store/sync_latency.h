// How long a disk takes to make writes durable. A histogram in microseconds, for /metrics and
// doctor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bmgpu::store {

struct SyncLatency {
  // Upper bounds of the buckets, inclusive; the last bucket has none.
  static constexpr std::array<std::int64_t, 13> kBoundsUs = {
      50, 100, 200, 500, 1'000, 2'000, 5'000, 10'000, 20'000, 50'000, 100'000, 500'000, 1'000'000};

  // Measured at open: the median of a few synced writes of 4 KiB beside the database.
  std::int64_t probe_p50_us = 0;

  // Every sync since: commits and checkpoints.
  std::array<std::uint64_t, kBoundsUs.size() + 1> buckets{};
  std::uint64_t syncs = 0;
  std::int64_t total_us = 0;
  std::int64_t last_us = 0;
  std::int64_t max_us = 0;

  void add(std::int64_t us) {
    std::size_t bucket = 0;
    while (bucket < kBoundsUs.size() && us > kBoundsUs[bucket]) {
      ++bucket;
    }
    ++buckets[bucket];
    ++syncs;
    total_us += us;
    last_us = us;
    max_us = us > max_us ? us : max_us;
  }
};

}  // namespace bmgpu::store
