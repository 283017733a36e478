#include "controld/sessions.h"

#include <atomic>
#include <utility>

#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/records.pb.h"
#include "controld/attempts.h"
#include "controld/exec_relay.h"
#include "wire/encoding.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::chrono::milliseconds kCheckEvery{200};
constexpr int kSequenceBits = 40;  // starts of bmd above, desired sets of one run below

std::string frame_bytes(const v1::MarketFrame& frame) {
  return wire::encode(wire::Encoding::Proto, frame);
}

std::string seconds_text(BootTime silence) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(silence).count()) +
         " ms";
}

}  // namespace

struct NodeSessions::Session {
  std::shared_ptr<api::Socket> socket;
  std::atomic<int> queued{0};
};

struct NodeSessions::Node {
  std::shared_ptr<Session> session;  // null: not connected
  bool said_hello = false;
  std::string agent_version;
  std::optional<Duration> clock_offset;  // the node's clock minus ours
  std::optional<v1::Inventory> inventory;
  bool accepted = false;
  std::string inventory_detail = "no inventory yet";
  std::map<std::string, GpuReading> readings;
  bool confirmed = false;  // the next desired set only
  std::string held;        // why it holds its desired set
};

NodeSessions::NodeSessions(Parts parts) : parts_(std::move(parts)) {}

NodeSessions::~NodeSessions() = default;

void NodeSessions::start(const Directory::Start& start, const core::State& state, BootTime now) {
  next_sequence_ = (start.number << kSequenceBits) + 1;
  seen_before_start_ = start.seen;
  for (const auto& [id, record] : state.nodes) {
    if (!record.lost) {
      parts_.liveness.watch(id, now);
    }
  }
}

api::SocketHandler NodeSessions::connected(NodeId node, std::shared_ptr<api::Socket> socket) {
  auto session = std::make_shared<Session>();
  session->socket = std::move(socket);
  parts_.inbox.post_always([this, node, session](Turn& turn) { attach(turn, node, session); });
  api::SocketHandler handler;
  handler.on_message = [this, node, session](std::string bytes) {
    auto frame = std::make_shared<v1::AgentFrame>();
    const Result<void> decoded = wire::decode_answer(bytes, *frame);
    if (!decoded) {
      session->socket->close("a frame that is not an AgentFrame");
      return;
    }
    if (frame->has_log()) {
      std::weak_ptr<Session> weak = session;
      v1::LogAck ack;
      ack.set_lease(frame->log().lease());
      ack.set_rank(frame->log().rank());
      ack.set_attempt(frame->log().attempt());
      parts_.logs.append(node, std::move(*frame->mutable_log()),
                         [weak, ack](const LogStore::Taken& taken) {
                           const std::shared_ptr<Session> alive = weak.lock();
                           if (alive) {
                             v1::MarketFrame answer;
                             *answer.mutable_log_ack() = ack;
                             answer.mutable_log_ack()->set_next_sequence(taken.next_sequence);
                             answer.mutable_log_ack()->set_complete(taken.complete);
                             alive->socket->send(frame_bytes(answer));
                           }
                         });
      return;
    }
    if (frame->has_stream()) {
      parts_.relay.from_node(node, frame->stream());
      return;
    }
    if (session->queued.fetch_add(1) >= kFramesQueuedMax) {
      session->socket->close("frames come faster than the market takes them");
      return;
    }
    parts_.inbox.post_always([this, node, session, frame](Turn& turn) {
      session->queued.fetch_sub(1);
      receive(turn, node, session, *frame);
    });
  };
  handler.on_closed = [this, node, session] {
    parts_.relay.node_gone(node, session->socket);
    parts_.inbox.post_always([this, node, session](Turn& turn) { detach(turn, node, session); });
  };
  return handler;
}

void NodeSessions::attach(Turn&, NodeId id, std::shared_ptr<Session> session) {
  const std::optional<NodeEntry> entry = parts_.directory.node(id);
  if (!entry || entry->removed) {
    session->socket->close("this node was removed from the market");
    return;
  }
  Node& node = nodes_[id];
  if (node.session) {
    node.session->socket->close("replaced by a newer session of this node");
  }
  parts_.relay.node_here(id, session->socket);
  node.session = std::move(session);
  node.said_hello = false;
  node.clock_offset.reset();
  parts_.log.info("agent connected", {{"node", wire::to_text(id)}});
}

void NodeSessions::detach(Turn& turn, NodeId id, const std::shared_ptr<Session>& session) {
  const auto found = nodes_.find(id);
  if (found != nodes_.end() && found->second.session == session) {
    Node& node = found->second;
    node.session.reset();
    node.said_hello = false;
    node.clock_offset.reset();
    parts_.log.info("agent disconnected", {{"node", wire::to_text(id)}});
    update_ready(turn, id);
  }
}

void NodeSessions::receive(Turn& turn, NodeId id, const std::shared_ptr<Session>& session,
                           const v1::AgentFrame& frame) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || found->second.session != session) {
    return;
  }
  Node& node = found->second;
  if (frame.has_hello()) {
    hello(turn, id, node, frame.hello());
  } else if (!node.said_hello) {
    session->socket->close("the first frame of a session is its hello");
  } else if (frame.has_desired_answer()) {
    const v1::DesiredAnswer& answer = frame.desired_answer();
    node.held = answer.held() ? answer.detail() : "";
  } else if (!turn.writable()) {
    return;  // said again after drop_all()
  } else if (frame.has_inventory()) {
    inventory(turn, id, node, frame.inventory());
  } else if (frame.has_attempt()) {
    attempt(turn, id, node, frame.attempt());
  } else if (frame.has_gpus()) {
    gpus(turn, id, node, frame.gpus());
  }
}

void NodeSessions::hello(Turn& turn, NodeId id, Node& node, const v1::AgentHello& hello) {
  node.said_hello = true;
  node.agent_version = hello.agent_version();
  node.clock_offset = Instant(hello.clock_unix_ms()) - turn.now();
  if (turn.writable()) {
    for (const v1::AttemptStatus& status : hello.attempts()) {
      attempt(turn, id, node, status);
    }
    update_ready(turn, id);
  }
  v1::MarketFrame frame;
  v1::Welcome& welcome = *frame.mutable_welcome();
  welcome.set_incarnation(turn.incarnation().value());
  welcome.set_clock_unix_ms(turn.now().unix_ms());
  welcome.set_market(parts_.market);
  node.session->socket->send(frame_bytes(frame));
  turn.sync(id);
}

void NodeSessions::inventory(Turn& turn, NodeId id, Node& node, const v1::Inventory& inventory) {
  node.inventory = inventory;
  for (const v1::InventoryGpu& gpu : inventory.gpus()) {
    node.readings[gpu.uuid()] = reading_of(gpu.condition());
  }
  register_node(turn, id, node);
  v1::MarketFrame frame;
  frame.mutable_inventory_answer()->set_accepted(node.accepted);
  frame.mutable_inventory_answer()->set_detail(node.inventory_detail);
  const std::shared_ptr<Session> session = node.session;
  turn.after_commit([session, bytes = frame_bytes(frame)](const Result<void>& durable) {
    if (durable) {
      session->socket->send(bytes);
    }
  });
  update_ready(turn, id);
}

void NodeSessions::register_node(Turn& turn, NodeId id, Node& node) {
  const std::optional<NodeEntry> entry = parts_.directory.node(id);
  check(entry.has_value(), "sessions: an authenticated node is not in the directory");
  const bool is_new = !turn.state().nodes.contains(id);
  const core::Answer answer = turn.execute(register_command(*entry, *node.inventory));
  const auto* refused = std::get_if<core::Refused>(&answer);
  node.accepted = refused == nullptr;
  if (node.accepted && is_new) {
    turn.execute(core::RenewNode{id});  // its GPUs are offered once it has said that they are clean
  }
  node.inventory_detail = refused == nullptr ? "accepted" : refused->reason.detail;
  if (node.accepted) {
    parts_.liveness.watch(id, turn.boot());
    for (const v1::InventoryGpu& gpu : node.inventory->gpus()) {
      report_gpu(turn, id, gpu.uuid(), gpu.condition().ok(), std::nullopt);
    }
  }
}

void NodeSessions::attempt(Turn& turn, NodeId id, Node& node, const v1::AttemptStatus& status) {
  const Result<LeaseId> lease = wire::parse_id<LeaseId>(status.lease());
  if (!lease || !holds_rank(turn.state(), *lease, status.rank(), id)) {
    turn.sync(id);  // it is over: the desired set says so
    return;
  }
  if (!status.progress().empty() || status.phase() == v1::ATTEMPT_PHASE_RUNNING) {
    const OrderId order = turn.state().leases.at(*lease).order;
    parts_.orders.set_progress(turn, order, status.progress());
  }
  report_attempt(turn, *lease, status, node.clock_offset.value_or(Duration()));
  if (status.phase() == v1::ATTEMPT_PHASE_RUNNING || status.phase() == v1::ATTEMPT_PHASE_ENDED) {
    turn.sync(id);
  }
}

void NodeSessions::gpus(Turn& turn, NodeId id, Node& node, const v1::GpuReport& report) {
  for (const v1::GpuReading& reading : report.gpus()) {
    node.readings[reading.uuid()] = reading_of(reading.condition());
    report_gpu(turn, id, reading.uuid(), reading.condition().ok(), reading.clean());
  }
}

// Until when the node is known to have run. A restart or a pause of bmd keeps it from being blamed,
// but shows nothing of it: what was not seen is not billed.
Instant NodeSessions::last_word(const Turn& turn, const Liveness::Silent& silent) const {
  if (!silent.last_heard) {
    return seen_before_start_;
  }
  const auto ago =
      std::chrono::duration_cast<std::chrono::milliseconds>(turn.boot() - *silent.last_heard);
  return turn.now() - milliseconds(ago.count());
}

void NodeSessions::begin(Turn& turn) {
  if (turn.boot() - last_check_ < kCheckEvery || !turn.writable()) {
    return;
  }
  last_check_ = turn.boot();
  for (const Liveness::Silent& silent : parts_.liveness.lost(turn.boot())) {
    const auto known = turn.state().nodes.find(silent.node);
    if (known == turn.state().nodes.end() || known->second.lost) {
      continue;
    }
    const auto ago =
        std::chrono::duration_cast<std::chrono::milliseconds>(turn.boot() - silent.last_renewal);
    parts_.log.warning("node lost",
                       {{"node", wire::to_text(silent.node)}, {"silent_ms", ago.count()}});
    turn.execute(core::DeclareNodeLost{silent.node, last_word(turn, silent)});
  }
  for (auto& [id, node] : nodes_) {
    const auto known = turn.state().nodes.find(id);
    const std::optional<BootTime> silence = parts_.liveness.silence(id, turn.boot());
    const bool back = known != turn.state().nodes.end() && known->second.lost && node.session &&
                      node.inventory && silence && *silence < kCheckEvery * 10;
    if (back) {
      register_node(turn, id, node);
    }
    update_ready(turn, id);
  }
}

void NodeSessions::update_ready(Turn& turn, NodeId id) {
  const auto known = turn.state().nodes.find(id);
  if (!turn.writable() || known == turn.state().nodes.end() || known->second.lost) {
    return;
  }
  bool ready = true;
  for (const GateView& gate : gates(id, turn.boot())) {
    ready = ready && gate.open;
  }
  if (ready != known->second.ready) {
    turn.execute(core::SetNodeReady{id, ready});
  }
}

std::vector<GateView> NodeSessions::gates(NodeId id, BootTime now) const {
  std::vector<GateView> gates;
  const auto found = nodes_.find(id);
  const bool connected = found != nodes_.end() && found->second.session;
  gates.push_back({"session", connected,
                   connected ? "the agent is connected"
                             : "the agent is not connected; is bm-agent running on the node?"});
  const std::optional<BootTime> silence = parts_.liveness.silence(id, now);
  const bool heard = silence && *silence < parts_.liveness.options().lost;
  gates.push_back({"heartbeat", heard,
                   silence ? "last acknowledged " + seconds_text(*silence) + " ago"
                           : "none yet; is bm-agent guard running on the node?"});
  if (!connected) {
    return gates;
  }
  const Node& node = found->second;
  const std::optional<Duration> heard_offset = parts_.liveness.clock_offset(id);
  const std::optional<Duration> known = heard_offset ? heard_offset : node.clock_offset;
  const Duration offset = known.value_or(Duration());
  const bool near = known && offset <= kClockSkewMax && offset >= Duration() - kClockSkewMax;
  gates.push_back({"clock", near,
                   !known ? "not known yet"
                   : near ? "within 30 s"
                          : "off by " + std::to_string(offset.count() / 1000) +
                                " s; set the node's clock (NTP) and restart bm-agent"});
  gates.push_back({"inventory", node.accepted, node.inventory_detail});
  if (node.inventory) {
    for (const v1::Gate& gate : node.inventory->gates()) {
      gates.push_back({gate.name(), gate.open(), gate.detail()});
    }
  }
  if (!node.held.empty()) {
    gates.push_back({"desired", false, node.held + "; confirm with bmcli nodes resume"});
  }
  return gates;
}

void NodeSessions::committed(const Turn& turn) {
  for (const NodeId id : turn.nodes_to_sync()) {
    const auto found = nodes_.find(id);
    if (found == nodes_.end() || !found->second.session || !found->second.said_hello) {
      continue;
    }
    v1::MarketFrame frame;
    *frame.mutable_desired() = desired(turn.state(), turn.incarnation(), id);
    frame.mutable_desired()->set_confirmed(std::exchange(found->second.confirmed, false));
    found->second.session->socket->send(frame_bytes(frame));
  }
}

v1::Desired NodeSessions::desired(const core::State& state, Incarnation incarnation, NodeId node) {
  v1::Desired desired;
  desired.set_incarnation(incarnation.value());
  desired.set_sequence(next_sequence_++);
  for (const core::DesiredAttempt& attempt : core::desired_attempts(state, node)) {
    const v1::JobRecord* job = parts_.orders.job(attempt.order);
    if (job == nullptr) {
      parts_.log.error("a lease has no job", {{"lease", wire::to_text(attempt.lease)}});
      continue;
    }
    *desired.add_attempts() = attempt_spec(attempt, job->job());
  }
  return desired;
}

void NodeSessions::drop_all() {
  for (auto& [id, node] : nodes_) {
    if (node.session) {
      node.session->socket->close("the market could not write; say everything again");
    }
  }
}

void NodeSessions::confirm(NodeId id) {
  Node& node = nodes_[id];
  node.confirmed = !node.held.empty();
}

std::optional<std::string> NodeSessions::why_alive(const core::State& state, NodeId id,
                                                   BootTime now) const {
  const std::string then = "drain it, wait until its leases have ended, then run bm-agent leave "
                           "on it";
  const auto record = state.nodes.find(id);
  if (record != state.nodes.end() && !record->second.leases.empty()) {
    return wire::to_text(*record->second.leases.begin()) + " lives on it: " + then;
  }
  const auto found = nodes_.find(id);
  if (found != nodes_.end() && found->second.session) {
    return "its agent is connected: " + then;
  }
  if (parts_.liveness.is_watched_alive(id, now)) {
    return "it may still live: it counts as lost " +
           std::to_string(parts_.liveness.options().lost.count()) +
           " ms after its last heartbeat; if bm-agent has left, try again then";
  }
  return std::nullopt;
}

void NodeSessions::forget(NodeId id) {
  nodes_.erase(id);
  parts_.liveness.forget(id);
}

std::string NodeSessions::agent_version(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? "" : found->second.agent_version;
}

std::map<std::string, GpuReading> NodeSessions::readings(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::map<std::string, GpuReading>() : found->second.readings;
}

std::int64_t NodeSessions::live() const {
  std::int64_t count = 0;
  for (const auto& [id, node] : nodes_) {
    count += node.session ? 1 : 0;
  }
  return count;
}

}  // namespace bmgpu::controld
