// What really runs on the nodes, whatever anybody believes.
//
// Rules: gpu-twice, rank-twice, attempt-twice, not-durable, orphan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent_core/attempt.h"
#include "sim/checkers/promises.h"
#include "sim/engine/verdict.h"

namespace bmgpu::sim {

class Containers {
 public:
  Containers(Verdict& verdict, Promises& promises) : verdict_(verdict), promises_(promises) {}

  // A container holds GPUs from when it is created until its last process is dead.
  void created(NodeId node, const agent_core::AttemptKey& key, const std::vector<int>& gpus,
               Instant now);
  void released(NodeId node, const agent_core::AttemptKey& key, Instant now);
  void dead(NodeId node, const agent_core::AttemptKey& key, Instant now);

  // No container outlives its lease's end by more than `patience`; with `connected`, none outlives
  // the durable word that the lease is over either.
  void check_ends(Instant now, Duration patience, bool connected);

  std::size_t alive() const { return alive_.size(); }
  bool is_running(LeaseId lease) const;

 private:
  struct Container {
    std::vector<int> gpus;
    std::optional<Instant> released;
  };
  using Place = std::pair<NodeId, agent_core::AttemptKey>;

  Verdict& verdict_;
  Promises& promises_;
  std::map<Place, Container> alive_;
  std::set<agent_core::AttemptKey> released_;  // ever
  std::map<std::pair<NodeId, int>, agent_core::AttemptKey> holders_;
};

}  // namespace bmgpu::sim
