// Scores of every node for every distinct request, kept until the node changes.
//
// A decision scans one row of numbers. Only nodes that changed since the row was last used are
// scored again, so that what a decision costs is the scan plus as many scores as there are distinct
// requests on average, however many nodes there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster.h"
#include "sim/policies/policy.h"

namespace bmgpu::sim {

class ScoreTable {
 public:
  // `nodes` by rank. Both outlive the table.
  ScoreTable(const Policy& policy, const std::vector<Node>& nodes, std::size_t requests)
      : policy_(policy), nodes_(nodes), rows_(requests) {}

  // Scores by rank of the request with this number.
  std::span<const std::int32_t> row(std::size_t number, const Request& request);
  void changed(std::size_t rank) { changes_.push_back(rank); }

 private:
  struct Row {
    std::vector<std::int32_t> scores;  // empty until first used
    std::size_t changes_seen = 0;
  };
  const Policy& policy_;
  const std::vector<Node>& nodes_;
  std::vector<Row> rows_;
  std::vector<std::size_t> changes_;  // ranks, oldest first
};

}  // namespace bmgpu::sim
