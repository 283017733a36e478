// The nodes as bmd talks with them: one WebSocket per agent (/bmgpu.v1.Agent/Session).
//
// What a node says becomes commands to core; what core wants of it goes out as its full desired
// set, numbered so that an older one is never taken for a newer one, across restarts of bmd too.
// All gates of a node must be open for it to be offered.
//
// connected() and what it returns run on the edge's thread, everything else on the loop's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/server.h"
#include "controld/inbox.h"
#include "controld/liveness.h"
#include "controld/log_service.h"
#include "controld/orders.h"
#include "controld/turn.h"
#include "wire/log.h"

namespace bmgpu::v1 {
class AgentFrame;
class AgentHello;
class AttemptStatus;
class Desired;
class GpuReport;
class Inventory;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

class ExecRelay;

struct GateView {
  std::string name;
  bool open = false;
  std::string detail;
};

// What people see of a node beside the core's view.
struct GpuReading {
  bool ok = true;
  std::string fault;
  std::uint32_t health = 0;
  std::optional<std::int32_t> temperature_c;
  std::optional<std::int64_t> power_mw;
};

class NodeSessions {
 public:
  static constexpr Duration kClockSkewMax = seconds(30);
  static constexpr int kFramesQueuedMax = 1024;  // per session; a node that sends faster is cut off

  struct Parts {
    Directory& directory;
    Liveness& liveness;
    Inbox& inbox;
    LogService& logs;
    Orders& orders;
    ExecRelay& relay;
    wire::Log& log;
    std::string market;  // label
  };
  explicit NodeSessions(Parts parts);
  ~NodeSessions();

  // Edge thread: a node opens its session.
  api::SocketHandler connected(NodeId node, std::shared_ptr<api::Socket> socket);

  // The number of this start of bmd on its database.
  void start(const Directory::Start& start, const core::State& state, BootTime now);

  // Each turn, before its work: gates, nodes that went silent, nodes that came back.
  void begin(Turn& turn);

  // After the commit: desired sets to those that need them.
  void committed(const Turn& turn);

  // Agents have to say everything again: what they said while nothing could be kept was lost.
  void drop_all();

  // An operator confirmed the desired set that a node holds back, if it does: the next one says so.
  void confirm(NodeId id);

  // Why the node can neither be removed nor join anew, and what to do; absent: it has left or is
  // lost.
  std::optional<std::string> why_alive(const core::State& state, NodeId id, BootTime now) const;

  // The node has left the market.
  void forget(NodeId id);

  std::vector<GateView> gates(NodeId node, BootTime now) const;
  std::string agent_version(NodeId node) const;
  std::map<std::string, GpuReading> readings(NodeId node) const;  // by UUID
  std::int64_t live() const;

 private:
  struct Session;
  struct Node;

  void attach(Turn& turn, NodeId node, std::shared_ptr<Session> session);
  void detach(Turn& turn, NodeId node, const std::shared_ptr<Session>& session);
  void receive(Turn& turn, NodeId node, const std::shared_ptr<Session>& session,
               const v1::AgentFrame& frame);
  void hello(Turn& turn, NodeId id, Node& node, const v1::AgentHello& hello);
  void inventory(Turn& turn, NodeId id, Node& node, const v1::Inventory& inventory);
  void register_node(Turn& turn, NodeId id, Node& node);
  void attempt(Turn& turn, NodeId id, Node& node, const v1::AttemptStatus& status);
  void gpus(Turn& turn, NodeId id, Node& node, const v1::GpuReport& report);
  void update_ready(Turn& turn, NodeId id);
  Instant last_word(const Turn& turn, const Liveness::Silent& silent) const;
  v1::Desired desired(const core::State& state, Incarnation incarnation, NodeId node);

  const Parts parts_;
  std::map<NodeId, Node> nodes_;
  std::uint64_t next_sequence_ = 1;
  BootTime last_check_{};
  Instant seen_before_start_;
};

}  // namespace bmgpu::controld
