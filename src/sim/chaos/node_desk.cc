#include "sim/chaos/node_desk.h"

#include <algorithm>
#include <utility>

#include "sim/chaos/market_process.h"
#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {
namespace {

using agent_core::Phase;

constexpr Duration kCheckEvery = milliseconds(200);
constexpr Duration kClockSkewMax = seconds(30);
constexpr std::int64_t kLostNs = 3'000'000'000;
constexpr std::int64_t kBackNs = 2'000'000'000;
constexpr std::uint64_t kFenceMs = 2000;
constexpr int kSequenceBits = 40;

// The rank's placement, if the newest allocation of the lease has it on that node.
bool holds_rank(const core::State& state, const agent_core::AttemptKey& key, NodeId node) {
  const auto found = state.leases.find(key.lease);
  if (found == state.leases.end()) {
    return false;
  }
  const auto& ranks = found->second.allocations.back().ranks;
  return key.rank < ranks.size() && ranks[key.rank].node == node;
}

}  // namespace

NodeDesk::NodeDesk(World& world, MarketProcess& market) : world_(world), market_(market) {}

std::int64_t NodeDesk::boot_ns() const { return world_.now().unix_ms() * 1'000'000; }

void NodeDesk::start(std::uint64_t starts, const core::State& state) {
  next_sequence_ = (starts << kSequenceBits) + 1;
  last_check_ = world_.now();
  world_.start_record = agent_core::next_start(world_.start_record, state.last_stamp, world_.now(),
                                               agent_core::LivenessTimes{});
  for (const auto& [id, node] : state.nodes) {
    if (!node.lost) {
      liveness_.watch(id, boot_ns());
    }
  }
}

void NodeDesk::close_all() {
  for (const std::weak_ptr<Stream>& socket : sockets_) {
    if (const std::shared_ptr<Stream> open = socket.lock()) {
      open->close(End::Market);
    }
  }
}

// --- heartbeats: answered at once, never through the commit ---

void NodeDesk::heartbeats_connected(NodeId id, std::shared_ptr<Stream> stream) {
  sockets_.push_back(stream);
  Node& node = nodes_[id];
  if (node.heartbeats) {
    node.heartbeats->close(End::Market);
  }
  node.heartbeats = stream;
  node.connection = liveness_.connected(id, boot_ns());
  stream->on_closed(End::Market, [&world = world_, life = world_.market_life, id,
                                  connection = node.connection, this] {
    if (world.market_life == life) {
      liveness_.disconnected(id, connection);
    }
  });
}

void NodeDesk::heartbeat(NodeId id, const std::shared_ptr<Stream>& stream,
                         const Heartbeat& heartbeat) {
  Node& node = nodes_[id];
  if (node.heartbeats != stream) {
    return;
  }
  if (!liveness_.heartbeat(id, node.connection, heartbeat.sequence, heartbeat.last_answer_sequence,
                           boot_ns())) {
    stream->close(End::Market);
    node.heartbeats.reset();
    return;
  }
  const agent_core::HeartbeatReply reply{heartbeat.sequence, heartbeat.sent_boottime_ns,
                                         market_.incarnation(), kFenceMs};
  stream->send(End::Market, [&world = world_, id, stream, reply] {
    world.nodes.at(id)->guard().answered(stream, reply);
  });
}

void NodeDesk::renew_all() { liveness_.renew_all(boot_ns()); }

// --- sessions ---

void NodeDesk::connected(NodeId id, std::shared_ptr<Stream> stream) {
  sockets_.push_back(stream);
  stream->on_closed(End::Market, [&world = world_, life = world_.market_life, id,
                                  weak = std::weak_ptr<Stream>(stream), this] {
    if (world.market_life == life) {
      market_.post([this, id, weak] { detach(id, weak.lock()); });
    }
  });
  market_.post([this, id, stream] { attach(id, stream); });
}

void NodeDesk::received(NodeId id, const std::shared_ptr<Stream>& stream, const AgentFrame& frame) {
  if (const auto* log = std::get_if<LogEnd>(&frame)) {
    to_node(id, stream, LogAck{log->key});
    return;
  }
  market_.post([this, id, stream, frame] { handle(id, stream, frame); });
}

void NodeDesk::attach(NodeId id, const std::shared_ptr<Stream>& stream) {
  Node& node = nodes_[id];
  if (node.session) {
    node.session->close(End::Market);
  }
  node.session = stream;
  node.said_hello = false;
}

void NodeDesk::detach(NodeId id, const std::shared_ptr<Stream>& stream) {
  Node& node = nodes_[id];
  if (stream && node.session == stream) {
    node.session.reset();
    node.said_hello = false;
    update_ready(id);
  }
}

void NodeDesk::handle(NodeId id, const std::shared_ptr<Stream>& stream, const AgentFrame& frame) {
  Node& node = nodes_[id];
  if (node.session != stream) {
    return;
  }
  if (const auto* said = std::get_if<Hello>(&frame)) {
    hello(id, node, *said);
  } else if (!node.said_hello) {
    world_.fail("protocol", "a frame came before its session's hello");
  } else if (const auto* answer = std::get_if<DesiredAnswer>(&frame)) {
    node.held = answer->held;
  } else if (!market_.writable()) {
    return;
  } else if (const auto* inventory = std::get_if<Inventory>(&frame)) {
    take_inventory(id, node, *inventory);
  } else if (const auto* status = std::get_if<AttemptStatus>(&frame)) {
    attempt(id, node, *status);
  } else if (const auto* report = std::get_if<GpuReport>(&frame)) {
    for (const GpuReading& reading : report->gpus) {
      report_gpu(id, reading, true);
    }
  }
}

void NodeDesk::hello(NodeId id, Node& node, const Hello& hello) {
  node.said_hello = true;
  node.clock_offset = hello.clock - world_.now();
  if (market_.writable()) {
    for (const AttemptStatus& status : hello.attempts) {
      attempt(id, node, status);
    }
    update_ready(id);
  }
  market_.sync(id);
}

void NodeDesk::take_inventory(NodeId id, Node& node, const Inventory& inventory) {
  node.inventory = inventory;
  register_node(id, node);
  update_ready(id);
}

void NodeDesk::register_node(NodeId id, Node& node) {
  const Inventory& inventory = *node.inventory;
  core::RegisterNode command{id,
                             SimNode::owner_of(id),
                             SimNode::site_of(id),
                             inventory.capacity,
                             inventory.gpus,
                             core::Driver::Simulated,
                             inventory.owner_floor};
  node.accepted = !std::holds_alternative<core::Refused>(market_.execute(command));
  if (!node.accepted) {
    return;
  }
  liveness_.watch(id, boot_ns());
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    report_gpu(id, GpuReading{inventory.gpus[i].uuid, inventory.ok[i], false}, false);
  }
}

void NodeDesk::attempt(NodeId id, Node& node, const AttemptStatus& status) {
  if (!holds_rank(market_.state(), status.key, id)) {
    market_.sync(id);  // it is over: the desired set says so
    return;
  }
  const FencingToken token{status.incarnation, status.key.attempt};
  const auto ours = [&](Instant theirs) {
    return std::min(theirs - node.clock_offset, world_.now());
  };
  if (status.running_since) {
    market_.execute(core::ReportAttemptRunning{status.key.lease, status.key.rank, token,
                                               ours(*status.running_since)});
  }
  if (status.phase == Phase::Ended) {
    market_.execute(core::ReportAttemptEnded{status.key.lease, status.key.rank, token,
                                             status.reason, ours(status.ended.value_or(Instant())),
                                             status.exit_code, status.detail});
  }
  if (status.phase == Phase::Running || status.phase == Phase::Ended) {
    market_.sync(id);
  }
}

void NodeDesk::report_gpu(NodeId id, const GpuReading& reading, bool look_at_clean) {
  const core::State& state = market_.state();
  const auto gpu = state.gpu_of_uuid.find(reading.uuid);
  if (gpu == state.gpu_of_uuid.end() || state.node_of_gpu.at(gpu->second) != id) {
    return;
  }
  const auto& gpus = state.nodes.at(id).gpus;
  const auto record = std::find_if(gpus.begin(), gpus.end(),
                                   [&](const auto& one) { return one.id == gpu->second; });
  const bool clean = look_at_clean && reading.clean;
  const bool fails = !reading.ok && record->state != core::GpuState::Failed;
  const bool cleaned =
      reading.ok && clean &&
      (record->state == core::GpuState::Sanitizing || record->state == core::GpuState::Failed);
  if (fails || cleaned) {
    market_.execute(core::ReportGpu{id, reading.uuid, reading.ok, clean});
  }
}

void NodeDesk::begin_turn() {
  if (world_.now() - last_check_ < kCheckEvery || !market_.writable()) {
    return;
  }
  last_check_ = world_.now();
  declare_lost();
  if (world_.sabotage == Sabotage::MarketFreesGpusEarly) {
    free_early();
  }
  for (auto& [id, node] : nodes_) {
    const auto known = market_.state().nodes.find(id);
    const auto silence = liveness_.silence_ns(id, boot_ns());
    const bool back = known != market_.state().nodes.end() && known->second.lost && node.session &&
                      node.inventory && silence && *silence < kBackNs;
    if (back) {
      register_node(id, node);
    }
    update_ready(id);
  }
}

void NodeDesk::declare_lost() {
  for (const auto& silent : liveness_.lost(boot_ns())) {
    const auto known = market_.state().nodes.find(silent.node);
    if (known == market_.state().nodes.end() || known->second.lost) {
      continue;
    }
    if (world_.nodes.at(silent.node)->guard().permits()) {
      world_.fail("permission", "node-" + std::to_string(silent.node.value()) +
                                    " is declared lost while its permission lasts");
    }
    const Instant seen = silent.last_heard_ns ? Instant(*silent.last_heard_ns / 1'000'000)
                                              : world_.start_record.seen;
    market_.execute(core::DeclareNodeLost{silent.node, seen});
  }
}

// What a market would do that does not wait for the node's word.
void NodeDesk::free_early() {
  std::vector<core::Lease> ending;
  for (const auto& [id, lease] : market_.state().leases) {
    if (lease.state == core::LeaseState::Ending) {
      ending.push_back(lease);
    }
  }
  for (const core::Lease& lease : ending) {
    const NodeId id = lease.allocations.back().ranks.front().node;
    const core::Attempt& attempt = lease.attempts.front();
    market_.execute(core::ReportAttemptEnded{lease.id,
                                             0,
                                             {attempt.incarnation, attempt.number},
                                             *lease.ending,
                                             world_.now(),
                                             std::nullopt,
                                             ""});
    for (const core::GpuDescription& gpu : world_.nodes.at(id)->gpus_seen()) {
      report_gpu(id, GpuReading{gpu.uuid, true, true}, true);
    }
  }
}

void NodeDesk::update_ready(NodeId id) {
  const auto known = market_.state().nodes.find(id);
  if (!market_.writable() || known == market_.state().nodes.end() || known->second.lost) {
    return;
  }
  const Node& node = nodes_[id];
  const auto silence = liveness_.silence_ns(id, boot_ns());
  const bool ready = node.session && node.said_hello && silence && *silence < kLostNs &&
                     node.clock_offset <= kClockSkewMax &&
                     node.clock_offset >= Duration() - kClockSkewMax && node.accepted &&
                     node.inventory && node.inventory->gates_open && !node.held;
  if (ready != known->second.ready) {
    market_.execute(core::SetNodeReady{id, ready});
  }
}

void NodeDesk::send_desired(NodeId id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || !found->second.session || !found->second.said_hello) {
    return;
  }
  Desired desired;
  desired.set.incarnation = market_.incarnation();
  desired.set.sequence = Sequence(next_sequence_++);
  desired.set.confirmed = std::exchange(found->second.confirmed, false);
  desired.specs = core::desired_attempts(market_.state(), id);
  for (const core::DesiredAttempt& attempt : desired.specs) {
    desired.set.attempts.push_back({{attempt.lease, attempt.rank, attempt.token.attempt},
                                    attempt.lease_end,
                                    attempt.stop,
                                    attempt.gpu_uuids});
  }
  to_node(id, found->second.session, std::move(desired));
}

void NodeDesk::to_node(NodeId id, const std::shared_ptr<Stream>& stream, MarketFrame frame) {
  stream->send(End::Market, [&world = world_, id, stream, frame = std::move(frame)] {
    world.nodes.at(id)->agent().received(stream, frame);
  });
}

void NodeDesk::drop_all() {
  for (auto& [id, node] : nodes_) {
    if (node.session) {
      node.session->close(End::Market);
      node.session.reset();
      node.said_hello = false;
    }
  }
}

void NodeDesk::confirm(NodeId id) { nodes_[id].confirmed = nodes_[id].held; }

bool NodeDesk::is_held(NodeId id) const {
  const auto found = nodes_.find(id);
  return found != nodes_.end() && found->second.held;
}

}  // namespace bmgpu::sim
