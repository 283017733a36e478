// Which nodes are alive: agent_core's LivenessState behind a lock, with the newest clock offset of
// each node beside it.
//
// Thread-safe: the heartbeat thread writes, the market loop reads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "agent_core/liveness_state.h"
#include "base/ids.h"
#include "base/time.h"
#include "controld/clock.h"

namespace bmgpu::controld {

struct LivenessOptions {
  std::chrono::milliseconds lost{3000};
  std::chrono::milliseconds fence{2000};
};

class Liveness {
 public:
  explicit Liveness(LivenessOptions options);
  const LivenessOptions& options() const { return options_; }
  agent_core::LivenessTimes times() const;

  // Watches `node` from now on, as renewed at `now`. Known already: no change.
  void watch(NodeId node, BootTime now);

  // A new heartbeat connection of the node; an older one counts no more.
  std::uint64_t connected(NodeId node, BootTime now);
  void disconnected(NodeId node, std::uint64_t connection);

  // True if it shall be answered.
  bool heartbeat(NodeId node, std::uint64_t connection, std::uint64_t sequence,
                 std::uint64_t last_answer_sequence, BootTime now);

  // The node's wall clock minus ours, as its newest heartbeat showed it.
  void set_clock_offset(NodeId node, Duration offset);
  std::optional<Duration> clock_offset(NodeId node) const;

  // bmd did not run for a while, or just started: nobody is blamed for it.
  void renew_all(BootTime now);

  struct Silent {
    NodeId node;
    BootTime last_renewal;
    std::optional<BootTime> last_heard;  // absent: not since bmd started
  };
  // Nodes whose last renewal is ≥ lost ago. Each is named again until it renews.
  std::vector<Silent> lost(BootTime now) const;

  // Whether the last renewal, or what counts as one, is younger than lost.
  bool is_watched_alive(NodeId node, BootTime now) const;

  // The node has left the market.
  void forget(NodeId node);

  // How long ago the last renewal was; absent if the node was never heard since bmd started.
  std::optional<BootTime> silence(NodeId node, BootTime now) const;

 private:
  const LivenessOptions options_;
  mutable std::mutex mutex_;
  agent_core::LivenessState state_;
  std::map<NodeId, Duration> clock_offsets_;
};

}  // namespace bmgpu::controld
