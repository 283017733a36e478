#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "store/sqlite/database.h"

namespace bmgpu::store {

void probe_disk(const std::string& path, SyncLatency& latency) {
  constexpr int kWrites = 9;
  const std::string probe = path + ".probe";
  const int file = ::open(probe.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return;  // a figure for people only: whether the database can be written is seen elsewhere
  }
  ::unlink(probe.c_str());
  const std::array<char, 4096> block{};
  std::vector<std::int64_t> times_us;
  for (int i = 0; i <= kWrites; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (::pwrite(file, block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()) ||
        ::fdatasync(file) != 0) {
      break;
    }
    const auto took = std::chrono::steady_clock::now() - start;
    if (i > 0) {  // the first one also allocates the block
      times_us.push_back(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    }
  }
  ::close(file);
  if (!times_us.empty()) {
    std::sort(times_us.begin(), times_us.end());
    latency.probe_p50_us = times_us[times_us.size() / 2];
  }
}

}  // namespace bmgpu::store
