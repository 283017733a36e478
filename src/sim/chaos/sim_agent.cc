#include "sim/chaos/sim_agent.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "sim/chaos/market_process.h"
#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {
namespace {

using agent_core::Phase;

constexpr Duration kRetryMin = milliseconds(100);
constexpr Duration kRetryMax = milliseconds(5000);
constexpr Duration kConnectLimit = milliseconds(5000);
constexpr Duration kShimRest = seconds(1);

}  // namespace

template <typename Task>
void SimAgent::after(Duration delay, Task task) {
  node_.world.timeline.after(delay, [this, life = life_, task] {
    if (running_ && life == life_) {
      task();
    }
  });
}

void SimAgent::start() {
  ++life_;
  running_ = true;
  reconcile_posted_ = false;
  in_force_.reset();
  specs_.clear();
  fetching_.clear();
  spawned_.clear();
  retry_ = kRetryMin;
  connect();
  after(seconds(1), [this] { every_second(); });
  after(milliseconds(node_.random.between(1000, 5000)), [this] { every_five_seconds(); });
  reconcile_soon();
}

void SimAgent::crash(Duration down) {
  if (!running_) {
    return;
  }
  node_.world.note("agent crashes", node_.id.value());
  running_ = false;
  if (stream_) {
    stream_->close(End::Node);
    stream_.reset();
  }
  node_.world.timeline.after(down, [this, boot = node_.boot_number()] {
    if (node_.is_up() && node_.boot_number() == boot && !running_) {
      start();
    }
  });
}

void SimAgent::node_dies() {
  running_ = false;
  if (stream_) {
    stream_->snap();
    stream_.reset();
  }
}

void SimAgent::every_second() {
  after(seconds(1), [this] { every_second(); });
  reconcile_soon();
}

void SimAgent::every_five_seconds() {
  after(seconds(5), [this] { every_five_seconds(); });
  send_gpus();
  repeat_statuses();
  send_log_ends();
  look_at_containers();
}

// --- the session ---

void SimAgent::connect() {
  World& world = node_.world;
  Link& link = *world.links.at(node_.id);
  if (!world.market || link.is_cut(End::Market) || link.is_cut(End::Node)) {
    after(world.market ? kConnectLimit : milliseconds(20), [this] { connect_later(); });
    return;
  }
  after(link.draw_latency() + link.draw_latency(), [this, &world, &link, life = world.market_life] {
    if (!world.market || world.market_life != life || link.is_cut(End::Node)) {
      connect_later();
      return;
    }
    const std::shared_ptr<Stream> stream = link.connect();
    world.market->nodes().connected(node_.id, stream);
    opened(stream);
  });
}

void SimAgent::connect_later() {
  after(retry_, [this] { connect(); });
  retry_ = std::min(retry_ + retry_, kRetryMax);
}

void SimAgent::opened(const std::shared_ptr<Stream>& stream) {
  stream_ = stream;
  retry_ = kRetryMin;
  stream->on_closed(End::Node, [this, life = life_, weak = std::weak_ptr<Stream>(stream)] {
    if (running_ && life == life_ && stream_ == weak.lock()) {
      stream_.reset();
      connect_later();
    }
  });
  Hello hello{node_.wall(), {}};
  for (const auto& [key, dir] : node_.disk) {
    hello.attempts.push_back(dir.status);
  }
  send(std::move(hello));
  sent_inventory_.reset();
  send_inventory();
  send_gpus();
}

void SimAgent::send(AgentFrame frame) {
  if (!stream_) {
    return;
  }
  stream_->send(End::Node, [&world = node_.world, life = node_.world.market_life, id = node_.id,
                            stream = stream_, frame = std::move(frame)] {
    if (world.market && world.market_life == life) {
      world.market->nodes().received(id, stream, frame);
    }
  });
}

void SimAgent::received(const std::shared_ptr<Stream>& stream, const MarketFrame& frame) {
  if (!running_ || stream != stream_) {
    return;
  }
  if (const auto* desired = std::get_if<Desired>(&frame)) {
    take_desired(*desired);
    repeat_later(*desired);
    return;
  }
  const auto dir = node_.disk.find(std::get<LogAck>(frame).key);
  if (dir != node_.disk.end()) {
    dir->second.log_complete = true;
    reconcile_soon();
  }
}

void SimAgent::take_desired(const Desired& desired) {
  const agent_core::Judgement judgement =
      agent_core::judge(in_force_, desired.set, observed(), node_.wall());
  const bool careless = node_.world.sabotage == Sabotage::AgentIgnoresTokens;
  const agent_core::Verdict verdict = careless ? agent_core::Verdict::InForce : judgement.verdict;
  if (verdict == agent_core::Verdict::Ignored) {
    return;
  }
  if (verdict == agent_core::Verdict::InForce) {
    in_force_ = desired.set;
    if (node_.world.sabotage == Sabotage::MarketFreesGpusEarly ||
        node_.world.sabotage == Sabotage::AgentLiesAboutClean) {
      for (agent_core::DesiredAttempt& attempt : in_force_->attempts) {
        attempt.gpus.clear();
      }
    }
    specs_.clear();
    for (const core::DesiredAttempt& spec : desired.specs) {
      specs_[{spec.lease, spec.rank, spec.token.attempt}] = spec;
    }
    reconcile({});
  } else {
    node_.world.note("set held", node_.id.value());
  }
  send(DesiredAnswer{desired.set.sequence, verdict == agent_core::Verdict::Held});
}

// What a slow path of the network delivers once more, long after newer sets.
void SimAgent::repeat_later(const Desired& desired) {
  if (node_.world.faults && node_.random.chance(1, 20)) {
    after(milliseconds(node_.random.between(10, 30'000)),
          [this, desired] { take_desired(desired); });
  }
}

void SimAgent::repeat_statuses() {
  for (const auto& [key, dir] : node_.disk) {
    if (dir.status.phase != Phase::Ended || specs_.contains(key)) {
      send(dir.status);
    }
  }
}

void SimAgent::send_log_ends() {
  for (const auto& [key, dir] : node_.disk) {
    if (dir.status.phase == Phase::Ended && !dir.log_complete) {
      send(LogEnd{key});
    }
  }
}

void SimAgent::send_inventory() {
  const core::NodeCapacity capacity{32'000, 262'144, 1'000'000};
  Inventory inventory{capacity, node_.gpus_seen(), node_.gpus_ok(), node_.owner_floor(),
                      node_.engine_works()};
  if (stream_ && sent_inventory_ != inventory) {
    send(inventory);
    sent_inventory_ = std::move(inventory);
  }
}

void SimAgent::send_gpus() {
  std::set<std::string> held;
  for (const auto& [key, dir] : node_.disk) {
    if (dir.status.phase != Phase::Ended || node_.shim(key) != nullptr) {
      held.insert(dir.spec.gpu_uuids.begin(), dir.spec.gpu_uuids.end());
    }
  }
  for (const auto& [key, expected] : fetching_) {
    held.insert(expected.gpu_uuids.begin(), expected.gpu_uuids.end());
  }
  const bool lies = node_.world.sabotage == Sabotage::AgentLiesAboutClean;
  GpuReport report;
  const std::vector<core::GpuDescription> seen = node_.gpus_seen();
  const std::vector<bool> ok = node_.gpus_ok();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const bool clean = lies || (!held.contains(seen[i].uuid) && !node_.in_use(seen[i].uuid));
    report.gpus.push_back({seen[i].uuid, ok[i], clean});
  }
  send(std::move(report));
}

void SimAgent::gpus_changed() {
  if (running_) {
    after(milliseconds(node_.random.between(10, 500)), [this] {
      send_inventory();
      send_gpus();
    });
  }
}

// --- the attempts ---

void SimAgent::status_changed(const Key& key) {
  if (!running_) {
    return;
  }
  after(milliseconds(1), [this, key] {
    const auto dir = node_.disk.find(key);
    if (dir == node_.disk.end()) {
      return;
    }
    send(dir->second.status);
    if (dir->second.status.phase == Phase::Ended) {
      send(LogEnd{key});
      after(milliseconds(10), [this] { send_gpus(); });
    }
    reconcile_soon();
  });
}

std::vector<agent_core::ObservedAttempt> SimAgent::observed() const {
  std::map<Key, agent_core::ObservedAttempt> all;
  for (const auto& [key, dir] : node_.disk) {
    all[key] = {key,          dir.status.phase, node_.shim(key) != nullptr, dir.log_complete,
                dir.want_end, dir.want_stop,    dir.spec.gpu_uuids};
  }
  for (const auto& [key, expected] : fetching_) {
    all[key] = {key, Phase::Preparing, true, false, expected.end, false, expected.gpu_uuids};
  }
  std::vector<agent_core::ObservedAttempt> attempts;
  for (const auto& [key, attempt] : all) {
    attempts.push_back(attempt);
  }
  return attempts;
}

void SimAgent::reconcile_soon() {
  if (!reconcile_posted_) {
    reconcile_posted_ = true;
    after(milliseconds(1), [this] {
      reconcile_posted_ = false;
      reconcile({});
    });
  }
}

void SimAgent::reconcile(const std::vector<agent_core::ObservedContainer>& containers) {
  for (const agent_core::Action& action :
       agent_core::plan(in_force_, agent_core::Observed{observed(), containers})) {
    act(action);
  }
}

void SimAgent::act(const agent_core::Action& action) {
  if (const auto* made = std::get_if<agent_core::CreateAttempt>(&action)) {
    create(made->key);
  } else if (const auto* want = std::get_if<agent_core::UpdateWant>(&action)) {
    update_want(*want);
  } else if (const auto* start = std::get_if<agent_core::StartShim>(&action)) {
    const auto last = spawned_.find(start->key);
    if (last == spawned_.end() || node_.world.now() - last->second >= kShimRest) {
      spawned_[start->key] = node_.world.now();
      node_.spawn_shim(start->key);
    }
  } else if (const auto* forgotten = std::get_if<agent_core::Forget>(&action)) {
    node_.disk.erase(forgotten->key);
  } else if (const auto* absent = std::get_if<agent_core::ReportAbsent>(&action)) {
    AttemptStatus status;
    status.key = absent->key;
    status.incarnation = specs_.at(absent->key).token.incarnation;
    status.phase = Phase::Ended;
    status.reason = core::EndReason::Stopped;
    status.ended = node_.wall();
    send(status);
  } else if (const auto* removed = std::get_if<agent_core::RemoveContainer>(&action)) {
    const auto at =
        std::find_if(node_.containers.begin(), node_.containers.end(), [&](const auto& entry) {
          return std::to_string(entry.first.lease.value()) == removed->id;
        });
    if (at != node_.containers.end()) {
      node_.remove_container(Key(at->first));
    }
  }
}

void SimAgent::create(const Key& key) {
  if (!node_.engine_works()) {
    return;
  }
  const auto spec = specs_.find(key);
  if (spec == specs_.end()) {
    return;
  }
  if (node_.random.chance(2, 3)) {
    begin(key);
    return;
  }
  fetching_[key] = {spec->second.lease_end, spec->second.gpu_uuids};
  after(milliseconds(node_.random.between(50, 8000)), [this, key] {
    if (fetching_.contains(key) && specs_.contains(key)) {
      begin(key);
    }
  });
}

void SimAgent::begin(const Key& key) {
  fetching_.erase(key);
  const core::DesiredAttempt& spec = specs_.at(key);
  AttemptDir dir;
  dir.spec = spec;
  dir.boot = node_.boot_number();
  dir.want_end = spec.lease_end;
  dir.status.key = key;
  dir.status.incarnation = spec.token.incarnation;
  const bool all_there = std::all_of(spec.gpu_uuids.begin(), spec.gpu_uuids.end(),
                                     [&](const std::string& uuid) { return node_.has_gpu(uuid); });
  if (!all_there) {
    dir.status.phase = Phase::Ended;
    dir.status.reason = core::EndReason::GpuLost;
    dir.status.ended = node_.wall();
  }
  node_.disk[key] = std::move(dir);
  if (all_there) {
    spawned_[key] = node_.world.now();
    node_.spawn_shim(key);
  } else {
    status_changed(key);
  }
}

void SimAgent::update_want(const agent_core::UpdateWant& want) {
  const auto fetched = fetching_.find(want.key);
  if (fetched != fetching_.end()) {
    fetched->second.end = want.lease_end;
    if (want.stop) {
      fetching_.erase(fetched);  // nothing of it exists
    }
    return;
  }
  AttemptDir& dir = node_.disk.at(want.key);
  dir.want_end = want.lease_end;
  dir.want_stop = want.stop;
  SimShim* shim = node_.shim(want.key);
  if (shim != nullptr) {
    node_.world.timeline.after(milliseconds(node_.random.between(1, 20)),
                               [&node = node_, key = want.key, shim] {
                                 if (node.shim(key) == shim) {
                                   shim->want_changed();
                                 }
                               });
  }
}

// The engine answers later than it was asked; what it lists may be old by then.
void SimAgent::look_at_containers() {
  if (!node_.engine_works()) {
    return;
  }
  std::vector<agent_core::ObservedContainer> listed;
  for (const auto& [key, container] : node_.containers) {
    listed.push_back({std::to_string(key.lease.value()), key});
  }
  after(milliseconds(node_.random.between(20, 400)),
        [this, listed = std::move(listed)] { reconcile(listed); });
}

}  // namespace bmgpu::sim
