#include "sim/engine/verdict.h"

namespace bmgpu::sim {

std::string seconds_text(Duration since) {
  std::string fraction = std::to_string(since.count() % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return std::to_string(since.count() / 1000) + "." + fraction;
}

std::vector<std::string> Trace::lines(Instant start) const {
  std::vector<std::string> lines;
  const std::uint64_t kept = entries_.size();
  const std::uint64_t first = count_ > kept ? count_ - kept : 0;
  for (std::uint64_t i = first; i < count_; ++i) {
    const Entry& entry = entries_[i % kept];
    std::string line = seconds_text(entry.at - start) + " s  " + entry.what;
    if (entry.a != 0) {
      line += " " + std::to_string(entry.a);
    }
    if (entry.b != 0) {
      line += " " + std::to_string(entry.b);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace bmgpu::sim
