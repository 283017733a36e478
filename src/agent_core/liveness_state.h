// Which nodes are alive: the other end of GuardState. What bmd answers heartbeats from, and the one
// place that says when a node is lost.
//
// A node's permission lasts `fence` from the instant at which it *sent* the heartbeat whose answer
// it got. A node is lost `lost` after the last renewal that bmd knows to have arrived:
//   - a heartbeat names the newest answer the guard received; that answer's heartbeat is a renewal
//     as of when bmd received it;
//   - the first heartbeat on a new connection proves that the way there and back works now;
//   - a gap of bmd itself is a renewal of everyone.
// An answer that could extend a permission beyond `lost` is not given: once the last renewal is
// older than lost − fence, heartbeats of that connection are heard but not answered, and the guard
// has to connect anew. So with one direction cut, a permission still ends before its node is lost.
//
// No clock here: every time is bmd's CLOCK_BOOTTIME in nanoseconds and comes in. One thread at a
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace bmgpu::agent_core {

struct LivenessTimes {
  std::int64_t lost_ns = 3'000'000'000;
  std::int64_t fence_ns = 2'000'000'000;
};

// What one start of bmd leaves for the next, so that a node which fell silent while bmd was away or
// kept crashing is not billed for that time.
struct StartRecord {
  Instant started;
  Instant seen;  // every node that was not lost then had been heard at most `lost` before
  bool operator==(const StartRecord&) const = default;
};

// The record of a start at `now` whose journal ends at `journal_end`. A life that was longer than
// `lost` has declared lost whom it did not hear, so the others were heard until its end; a shorter
// one says nothing new.
StartRecord next_start(const StartRecord& before, Instant journal_end, Instant now,
                       const LivenessTimes& times);

class LivenessState {
 public:
  explicit LivenessState(LivenessTimes times) : times_(times) {}

  // Watches `node` from now on, as renewed at `now`. Known already: no change.
  void watch(NodeId node, std::int64_t now_ns);

  // A new heartbeat connection of the node; an older one counts no more.
  std::uint64_t connected(NodeId node, std::int64_t now_ns);
  void disconnected(NodeId node, std::uint64_t connection);

  // True if it shall be answered.
  bool heartbeat(NodeId node, std::uint64_t connection, std::uint64_t sequence,
                 std::uint64_t last_answer_sequence, std::int64_t now_ns);

  // bmd did not run for a while, or just started: nobody is blamed for it.
  void renew_all(std::int64_t now_ns);

  struct Silent {
    NodeId node;
    std::int64_t last_renewal_ns = 0;
    std::optional<std::int64_t> last_heard_ns;  // absent: not since bmd started
  };
  // Nodes whose last renewal is ≥ lost ago. Each is named again until it renews.
  std::vector<Silent> lost(std::int64_t now_ns) const;

  // Whether the last renewal, or what counts as one, is younger than `lost`.
  bool is_watched_alive(NodeId node, std::int64_t now_ns) const;

  // The node has left the market.
  void forget(NodeId node) { nodes_.erase(node); }

  // How long ago the last renewal was; absent if the node was never heard since bmd started.
  std::optional<std::int64_t> silence_ns(NodeId node, std::int64_t now_ns) const;

 private:
  struct Answered {
    std::uint64_t sequence = 0;
    std::int64_t received_ns = 0;
  };
  struct Entry {
    std::int64_t last_renewal_ns = 0;
    std::optional<std::int64_t> last_heard_ns;  // the last renewal by a heartbeat
    std::uint64_t connection = 0;               // 0 = none
    bool first_on_connection = true;
    std::deque<Answered> answered;  // not yet acknowledged, oldest first
  };
  static constexpr std::size_t kUnacknowledgedMax = 64;

  LivenessTimes times_;
  std::map<NodeId, Entry> nodes_;
  std::uint64_t next_connection_ = 1;
};

}  // namespace bmgpu::agent_core
