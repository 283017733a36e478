// Ranks the nodes that can take a request: what the fleet loses by it, least first.
//
// The loss is what the packing pass says that the node is worth less afterwards, plus a twentieth
// of what the fragmentation pass says that more of it is unusable. Losses are compared in steps of
// a fiftieth of a GPU: below that they are noise, and ties keep nodes in use filling up. Ties:
// nodes in use first, then as the caller lists its nodes (core: by id).
//
// docs/adr/0008-placement.md has the measurements behind these choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/placement/fragmentation.h"
#include "core/placement/packing.h"
#include "core/placement/shape.h"

namespace bmgpu::core {

// Which passes take part; a pass left out loses nothing anywhere.
struct RankPasses {
  bool packing = true;
  bool fragmentation = true;
  bool in_use = true;
  bool operator==(const RankPasses&) const = default;
};

struct Fleet {
  std::vector<std::int64_t> gpus_of_model;  // by model; at most 64
};

// Immutable: it can be used by any thread.
class Ranking {
 public:
  Ranking(const std::vector<TypicalRequest>& mix, const Fleet& fleet, RankPasses passes = {});

  // How well a request fits a node and, for a share, on which GPU.
  struct Fit {
    std::int32_t score = 0;  // at least 0; higher is better
    std::size_t gpu = 0;  // index in NodeShape::gpus; of equals the one with least left, the first
  };
  // REQUIRES: can_take(node, request).
  Fit fit(const NodeShape& node, bool in_use, const RequestShape& request) const;

 private:
  std::int64_t worth_micros(const NodeShape& node) const;

  RankPasses passes_;
  std::optional<Packing> packing_;
  std::optional<Fragmentation> fragmentation_;
};

}  // namespace bmgpu::core
