// Which nodes are alive: the published table that heartbeats are answered from, and the one place
// that says when a node is lost.
//
// A node's permission lasts fence_ms from the instant at which it *sent* the heartbeat whose answer
// it got. A node is lost lost_ms after the last renewal that bmd knows to have arrived:
//   - a heartbeat names the newest answer the guard received; that answer's heartbeat is a renewal
//     as of when bmd received it;
//   - the first heartbeat on a new connection proves that the way there and back works now;
//   - a gap of bmd itself is a renewal of everyone.
// An answer that could extend a permission beyond `lost` is not given: once the last renewal is
// older than lost_ms − fence_ms, heartbeats of that connection are heard but not answered, and the
// guard has to connect anew. So with one direction cut, a permission still ends before its node is
// lost.
//
// Thread-safe: the heartbeat thread writes, the market loop reads.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "controld/clock.h"

namespace bmgpu::controld {

struct LivenessOptions {
  std::chrono::milliseconds lost{3000};
  std::chrono::milliseconds fence{2000};
};

class Liveness {
 public:
  explicit Liveness(LivenessOptions options) : options_(options) {}
  const LivenessOptions& options() const { return options_; }

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
  struct Answered {
    std::uint64_t sequence = 0;
    BootTime received{};
  };
  struct Entry {
    BootTime last_renewal{};
    bool heard = false;            // a renewal by a heartbeat since start
    std::uint64_t connection = 0;  // 0 = none
    bool first_on_connection = true;
    std::optional<Duration> clock_offset;
    std::deque<Answered> answered;  // not yet acknowledged, oldest first
  };
  static constexpr std::size_t kUnacknowledgedMax = 64;

  const LivenessOptions options_;
  mutable std::mutex mutex_;
  std::map<NodeId, Entry> nodes_;
  std::uint64_t next_connection_ = 1;
};

}  // namespace bmgpu::controld
