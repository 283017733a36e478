// A placement policy of the simulator: a score per node that fits, and a choice among the scores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/cluster.h"
#include "sim/workloads/openb_arrivals.h"

namespace bmgpu::sim {

inline constexpr std::int32_t kDoesNotFit = -1;

class Policy {
 public:
  virtual ~Policy() = default;
  // How good the node is for the request, at least 0. Depends on its arguments only, so that it can
  // be kept until the node changes. REQUIRES: fits(node, request).
  virtual std::int32_t score(const Node& node, const Request& request) const = 0;
  // The chosen node out of scores by rank (kDoesNotFit: cannot be chosen); absent if none fits.
  // Unless overridden the highest score wins, the smaller rank of equals.
  virtual std::optional<std::size_t> choose(std::span<const std::int32_t> scores);
  // The device for a share of a GPU. REQUIRES: fits. Unless overridden the tightest.
  virtual std::size_t device(const Node& node, const Request& request);
};

// What a policy may know before the first pod arrives.
struct PolicyInputs {
  const OpenbTrace& trace;
  const std::vector<core::TypicalRequest>& typical;
  std::uint64_t seed = 0;  // for policies that draw
};

struct NamedPolicy {
  std::string_view name;
  std::function<std::unique_ptr<Policy>(const PolicyInputs&)> make;
};

// All of them: the published ones, then ours.
std::span<const NamedPolicy> all_policies();

}  // namespace bmgpu::sim
