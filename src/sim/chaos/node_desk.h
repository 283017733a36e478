// The market's end of its nodes: sessions, heartbeats, gates, desired sets. What src/controld does
// in sessions.cc and heartbeat.cc, on plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "agent_core/liveness_state.h"
#include "sim/chaos/frames.h"
#include "sim/engine/stream.h"

namespace bmgpu::sim {

class MarketProcess;
struct World;

class NodeDesk {
 public:
  NodeDesk(World& world, MarketProcess& market);

  void start(std::uint64_t starts, const core::State& state);
  void close_all();  // the process dies

  // From the edge, at once.
  void connected(NodeId node, std::shared_ptr<Stream> stream);
  void received(NodeId node, const std::shared_ptr<Stream>& stream, const AgentFrame& frame);
  void heartbeats_connected(NodeId node, std::shared_ptr<Stream> stream);
  void heartbeat(NodeId node, const std::shared_ptr<Stream>& stream, const Heartbeat& heartbeat);

  // In a turn.
  void begin_turn();
  void send_desired(NodeId node);
  void drop_all();  // the state was built anew: everybody says everything again
  void confirm(NodeId node);
  void renew_all();
  bool is_held(NodeId node) const;

 private:
  struct Node {
    std::shared_ptr<Stream> session;
    bool said_hello = false;
    Duration clock_offset;  // the node's clock minus ours
    std::optional<Inventory> inventory;
    bool accepted = false;
    bool confirmed = false;  // the next desired set only
    bool held = false;
    std::shared_ptr<Stream> heartbeats;
    std::uint64_t connection = 0;
  };

  std::int64_t boot_ns() const;
  void attach(NodeId id, const std::shared_ptr<Stream>& stream);
  void detach(NodeId id, const std::shared_ptr<Stream>& stream);
  void handle(NodeId id, const std::shared_ptr<Stream>& stream, const AgentFrame& frame);
  void hello(NodeId id, Node& node, const Hello& hello);
  void take_inventory(NodeId id, Node& node, const Inventory& inventory);
  void register_node(NodeId id, Node& node);
  void attempt(NodeId id, Node& node, const AttemptStatus& status);
  void report_gpu(NodeId id, const GpuReading& reading, bool look_at_clean);
  void update_ready(NodeId id);
  void declare_lost();
  void free_early();
  void to_node(NodeId id, const std::shared_ptr<Stream>& stream, MarketFrame frame);

  World& world_;
  MarketProcess& market_;
  agent_core::LivenessState liveness_{agent_core::LivenessTimes{}};
  std::map<NodeId, Node> nodes_;
  std::vector<std::weak_ptr<Stream>> sockets_;  // all that were ever opened
  std::uint64_t next_sequence_ = 1;
  Instant last_check_;
};

}  // namespace bmgpu::sim
