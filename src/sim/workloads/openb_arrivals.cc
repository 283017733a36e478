#include "sim/workloads/openb_arrivals.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/prng.h"

namespace bmgpu::sim {
namespace {

constexpr std::int64_t kTypicalPermille = 950;

void shuffle(std::vector<std::size_t>& list, Prng& prng) {
  for (std::size_t left = list.size(); left > 1; --left) {
    std::swap(list[left - 1], list[prng.below(left)]);
  }
}

}  // namespace

OpenbArrivals openb_arrivals(const OpenbTrace& trace, std::uint64_t seed) {
  Prng prng(seed);
  OpenbArrivals arrivals{{}, trace.pods};
  shuffle(arrivals.pods, prng);
  std::int64_t asked = 0;
  for (const std::size_t pod : arrivals.pods) {
    asked += trace.requests[pod].gpu_thousandths();
  }
  const std::int64_t target = trace.gpu_thousandths() * kArrivedPermille / 1000;
  for (;;) {
    const std::size_t pod = trace.pods[prng.below(trace.pods.size())];
    const Request& request = trace.requests[pod];
    if (asked + request.thousandths > target) {  // as published: of one GPU, and the draw is lost
      break;
    }
    asked += request.gpu_thousandths();
    arrivals.pods.push_back(pod);
  }
  arrivals.nodes.resize(trace.nodes.size());
  std::iota(arrivals.nodes.begin(), arrivals.nodes.end(), std::size_t{0});
  shuffle(arrivals.nodes, prng);
  return arrivals;
}

std::vector<core::TypicalRequest> typical_requests(const OpenbTrace& trace) {
  std::map<Request, std::int64_t> counts;
  for (const std::size_t pod : trace.pods) {
    Request request = trace.requests[pod];
    request.memory_mib = 0;
    ++counts[request];
  }
  std::vector<core::TypicalRequest> typical;
  for (const auto& [request, pods] : counts) {
    typical.push_back(core::TypicalRequest{request, pods});
  }
  std::stable_sort(typical.begin(), typical.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  const auto all = static_cast<std::int64_t>(trace.pods.size());
  std::int64_t covered = 0;
  std::size_t kept = 0;
  while (covered * 1000 < all * kTypicalPermille) {
    covered += typical[kept++].count;
  }
  typical.resize(kept);
  return typical;
}

}  // namespace bmgpu::sim
