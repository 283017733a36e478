#include "core/placement/ranking.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "core/types.h"

namespace bmgpu::core {
namespace {

constexpr std::int64_t kFragmentationPart = 20;  // a twentieth of it counts
constexpr std::int64_t kStepMicros = kMicrosPerGpu / 50;
constexpr std::int64_t kNoiseMicros = 100;  // of rounded prices
constexpr std::int64_t kStepsMax = 1'000'000;

// The step that a loss falls into: 0 for none, negative for a gain.
std::int64_t step_of(std::int64_t loss_micros) {
  const std::int64_t above = loss_micros - kNoiseMicros;
  return above > 0 ? (above + kStepMicros - 1) / kStepMicros : -(-above / kStepMicros);
}

using Gpus = std::array<std::int32_t, static_cast<std::size_t>(Limits::kGpusPerNodeMax)>;

}  // namespace

Ranking::Ranking(const std::vector<TypicalRequest>& mix, const Fleet& fleet, RankPasses passes)
    : passes_(passes) {
  const auto models = static_cast<std::int32_t>(fleet.gpus_of_model.size());
  if (passes.packing) {
    packing_.emplace(packing_prices(mix, fleet.gpus_of_model), models);
  }
  if (passes.fragmentation) {
    fragmentation_.emplace(mix, models);
  }
}

std::int64_t Ranking::worth_micros(const NodeShape& node) const {
  const std::int64_t worth = packing_ ? packing_->worth_micros(node) : 0;
  return worth - (fragmentation_ ? fragmentation_->expected_loss(node) / kFragmentationPart : 0);
}

Ranking::Fit Ranking::fit(const NodeShape& node, bool in_use, const RequestShape& request) const {
  check(node.gpus.size() <= Gpus().size(), "ranking: a node with too many GPUs");
  Gpus left{};
  std::copy(node.gpus.begin(), node.gpus.end(), left.begin());
  NodeShape after = node;
  after.cpu_millis -= request.cpu_millis;
  after.memory_mib -= request.memory_mib;
  after.gpus = std::span<const std::int32_t>(left.data(), node.gpus.size());
  const std::int64_t before = worth_micros(node);
  const auto score = [&] {
    const std::int64_t step =
        std::clamp(step_of(before - worth_micros(after)), -kStepsMax, kStepsMax);
    return static_cast<std::int32_t>((kStepsMax - step) * 2 + (passes_.in_use && in_use ? 1 : 0));
  };
  if (!request.is_share()) {
    std::int32_t wanted = request.gpus;
    for (std::size_t gpu = 0; gpu < node.gpus.size() && wanted > 0; ++gpu) {
      if (left[gpu] == kWholeGpu) {
        left[gpu] = 0;
        --wanted;
      }
    }
    return Fit{score(), 0};
  }
  Fit best{-1, 0};
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    const std::int32_t was = left[gpu];
    const auto same = std::find(node.gpus.begin(), node.gpus.begin() + gpu, was);
    if (was < request.thousandths || same != node.gpus.begin() + gpu) {
      continue;
    }
    left[gpu] = was - request.thousandths;
    const Fit fit{score(), gpu};
    left[gpu] = was;
    if (fit.score > best.score || (fit.score == best.score && was < left[best.gpu])) {
      best = fit;
    }
  }
  return best;
}

}  // namespace bmgpu::core
