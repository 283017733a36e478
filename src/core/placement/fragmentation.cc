#include "core/placement/fragmentation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace bmgpu::core {

Fragmentation::Fragmentation(const std::vector<TypicalRequest>& mix, std::int32_t models) {
  for (const TypicalRequest& one : mix) {
    check(one.count >= 0, "fragmentation: a count below zero");
    count_ += one.count;
  }
  for (std::int32_t model = 0; model < models; ++model) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::map<std::int64_t, std::int64_t>> by_size;
    for (const TypicalRequest& one : mix) {
      const RequestShape& request = one.request;
      if (request.gpus > 0 && request.takes_model(model)) {
        by_size[{request.thousandths, request.gpus}][request.cpu_millis] += one.count;
      }
    }
    std::vector<Size>& sizes = sizes_.emplace_back();
    for (const auto& [key, by_cpu] : by_size) {
      Size& size = sizes.emplace_back(Size{key.first, key.second, {}});
      std::int64_t sum = 0;
      for (const auto& [cpu, count] : by_cpu) {
        sum += count;
        size.steps.push_back(Step{cpu, sum});
      }
    }
  }
}

std::int64_t Fragmentation::expected_loss(const NodeShape& node) const {
  std::int64_t idle = 0;
  for (const std::int32_t left : node.gpus) {
    idle += left;
  }
  if (idle == 0 || count_ == 0) {
    return 0;
  }
  Wide unusable = Wide{idle} * count_;
  for (const Size& size : sizes_[static_cast<std::size_t>(node.model)]) {
    if (size.steps.front().cpu_millis > node.cpu_millis) {
      continue;
    }
    std::int64_t usable = 0;
    std::int32_t enough = 0;
    for (const std::int32_t left : node.gpus) {
      if (left >= size.thousandths) {
        usable += left;
        ++enough;
      }
    }
    if (enough >= size.gpus) {
      const auto after = std::upper_bound(
          size.steps.begin(), size.steps.end(), node.cpu_millis,
          [](std::int64_t cpu, const Step& step) { return cpu < step.cpu_millis; });
      unusable -= Wide{usable} * std::prev(after)->count;
    }
  }
  return static_cast<std::int64_t>(unusable * 1000 / count_);
}

}  // namespace bmgpu::core
