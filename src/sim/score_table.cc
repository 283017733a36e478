#include "sim/score_table.h"

namespace bmgpu::sim {

std::span<const std::int32_t> ScoreTable::row(std::size_t number, const Request& request) {
  Row& row = rows_[number];
  const auto refresh = [&](std::size_t rank) {
    const Node& node = nodes_[rank];
    row.scores[rank] = fits(node, request) ? policy_.score(node, request) : kDoesNotFit;
  };
  if (row.scores.empty()) {
    row.scores.resize(nodes_.size());
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      refresh(rank);
    }
  } else {
    for (std::size_t i = row.changes_seen; i < changes_.size(); ++i) {
      refresh(changes_[i]);
    }
  }
  row.changes_seen = changes_.size();
  return row.scores;
}

}  // namespace bmgpu::sim
