#include "sim/policies/fgd.h"

#include <cmath>

namespace bmgpu::sim {

FgdPolicy::FgdPolicy(const std::vector<core::TypicalRequest>& typical) {
  std::int64_t pods = 0;
  for (const core::TypicalRequest& one : typical) {
    pods += one.count;
  }
  for (const core::TypicalRequest& one : typical) {
    typical_.push_back({one.request, static_cast<double>(one.count) / static_cast<double>(pods)});
  }
}

double FgdPolicy::fragmentation(const Node& node) const {
  const std::int64_t idle = node.gpu_thousandths();
  double sum = 0;
  for (const Weighted& one : typical_) {
    const Request& request = one.request;
    std::int64_t unusable = idle;
    if (request.gpus > 0 && request.takes_model(node.model) &&
        request.cpu_millis <= node.cpu_millis) {
      std::int64_t too_small = 0;
      std::int32_t devices = 0;
      for (const std::int32_t left : node.gpus) {
        const bool is_enough = left >= request.thousandths;
        devices += is_enough ? 1 : 0;
        too_small += is_enough ? 0 : left;
      }
      unusable = devices >= request.gpus ? too_small : idle;
    }
    sum += one.share * static_cast<double>(unusable);
  }
  return sum;
}

FgdPolicy::Best FgdPolicy::best(const Node& node, const Request& request) const {
  const double before = fragmentation(node);
  Best best;
  Node after = node;
  const auto consider = [&](std::size_t device) {
    take(after, request, device);
    const double gain = (before - fragmentation(after)) / 1000;
    const auto score = static_cast<std::int32_t>(100 / (1 + std::exp(-gain)));
    if (score > best.score) {
      best = Best{score, device};
    }
    after = node;
  };
  if (request.thousandths == 0 || request.thousandths == 1000) {
    consider(0);
    return best;
  }
  for (std::size_t device = 0; device < node.gpus.size(); ++device) {
    if (node.gpus[device] >= request.thousandths) {
      consider(device);
    }
  }
  return best;
}

std::int32_t FgdPolicy::score(const Node& node, const Request& request) const {
  return best(node, request).score;
}

std::size_t FgdPolicy::device(const Node& node, const Request& request) {
  return best(node, request).device;
}

}  // namespace bmgpu::sim
