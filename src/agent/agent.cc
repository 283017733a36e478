#include "agent/agent.h"

#include <algorithm>
#include <csignal>

#include "agent/guard.h"
#include "agent/host/facts.h"
#include "agent/node_file.h"
#include "agent/own_program.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"
#include "wire/ids.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookPeriod{1000};
constexpr milliseconds kReportPeriod{5000};
constexpr milliseconds kGuardPeriod{2000};
constexpr milliseconds kEvictPeriod{600'000};
// A shim ends within milliseconds of its attempt; it is looked at that often, that many times.
constexpr milliseconds kShimEndPeriod{10};
constexpr int kShimEndLooks = 500;
constexpr std::int64_t kClockOffsetWarnMs = 5000;

std::vector<std::string> guard_program(const std::string& state_dir) {
  return {own_program(), "guard", "--state-dir", state_dir};
}

agent_core::DesiredSet to_core(const v1::Desired& desired) {
  agent_core::DesiredSet set{
      Incarnation(desired.incarnation()), Sequence(desired.sequence()), desired.confirmed(), {}};
  for (const v1::AttemptSpec& spec : desired.attempts()) {
    if (const auto key = key_of(name_of(spec))) {
      set.attempts.push_back({*key,
                              Instant(spec.lease_end_unix_ms()),
                              spec.stop(),
                              {spec.gpu_uuids().begin(), spec.gpu_uuids().end()}});
    }
  }
  std::sort(set.attempts.begin(), set.attempts.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return set;
}

bool names_twice(const agent_core::DesiredSet& set) {
  return std::adjacent_find(set.attempts.begin(), set.attempts.end(),
                            [](const auto& a, const auto& b) { return a.key == b.key; }) !=
         set.attempts.end();
}

}  // namespace

std::string agent_lock_path(const std::string& state_dir) { return state_dir + "/agent.lock"; }

Result<std::unique_ptr<Agent>> Agent::create(const AgentConfig& config, wire::Log& log) {
  const Result<v1::NodeFile> node = read_node_file(config.state_dir);
  if (!node) {
    return node.error();
  }
  Result<ProcessLock> lock = ProcessLock::take(agent_lock_path(config.state_dir));
  if (!lock) {
    return Error{lock.error().code,
                 "another bm-agent runs with this state folder: " + lock.error().message};
  }
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::create();
  if (!loop) {
    return loop.error();
  }
  std::unique_ptr<Agent> agent(new Agent(config, *node, log, std::move(*loop)));
  agent->lock_ = std::move(*lock);
  if (Result<void> started = agent->start(); !started) {
    return started.error();
  }
  return agent;
}

Agent::Agent(const AgentConfig& config, const v1::NodeFile& node, wire::Log& log,
             std::unique_ptr<EventLoop> loop)
    : config_(config),
      node_file_(std::make_unique<v1::NodeFile>(node)),
      boot_id_(read_boot_id()),
      log_(log),
      loop_(std::move(loop)) {}

Agent::~Agent() = default;

void Agent::run() { loop_->run(); }

Result<void> Agent::start() {
  Result<Fd> signals = watch_signals(*loop_, {SIGTERM, SIGINT}, [this] {
    log_.info("the agent ends; jobs run on");
    loop_->stop();
  });
  if (!signals) {
    return signals.error();
  }
  signals_ = std::move(*signals);
  if (Result<void> guarded = ensure_guard(config_.state_dir, guard_program(config_.state_dir));
      !guarded) {
    return guarded;
  }
  Result<std::unique_ptr<AttemptTable>> table =
      AttemptTable::create(*loop_, log_, config_.state_dir, {own_program(), "shim"},
                           {[this](const Key& key) { status_changed(key); },
                            [this](const Key& key) { logs_->grown(key); }});
  if (!table) {
    return table.error();
  }
  table_ = std::move(*table);
  logs_ = std::make_unique<LogForwarder>(
      *loop_, log_,
      LogForwarder::Options{[this](const v1::AgentFrame& frame) { return session_->send(frame); },
                            [this] { return session_->queued_bytes(); },
                            [this](const Key& key) {
                              table_->set_log_complete(key);
                              reconcile_soon();
                            }});
  relay_ = std::make_unique<ExecRelay>(
      *loop_,
      ExecRelay::Options{[this](const v1::AgentFrame& frame) { return session_->send(frame); },
                         [this](const std::string& lease) { return container_of(lease); },
                         [this] { return watch_->runtime()->facts(); }});
  blobs_ = std::make_unique<BlobCache>(*loop_, log_, config_.state_dir + "/blobs",
                                       session_endpoint(*node_file_),
                                       config_.blob_cache_mib * 1024 * 1024);
  watch_ = std::make_unique<NodeWatch>(
      *loop_, log_, config_, *node_file_,
      NodeWatch::Callbacks{
          [this] {
            send_inventory();
            send_gpus(When::Changed);
            reconcile_soon();
          },
          [this](const std::vector<ContainerInfo>& containers) { reconcile(containers); }});
  starter_ = std::make_unique<AttemptStarter>(
      AttemptStarter::Parts{*loop_, *table_, *blobs_, *watch_, [this](const Key& key) {
                              const auto at = specs_.find(key);
                              return at == specs_.end() ? nullptr : at->second;
                            }});
  take_up_attempts();
  if (Result<void> watching = watch_->start(); !watching) {
    return watching;
  }
  session_ = std::make_unique<Session>(
      *loop_, session_endpoint(*node_file_), log_,
      Session::Callbacks{[this] { session_opened(); },
                         [this](const v1::MarketFrame& frame) { take(frame); },
                         [this] {
                           logs_->session_closed();
                           relay_->session_closed();
                         }});
  start_timers();
  reconcile_soon();
  return {};
}

void Agent::take_up_attempts() {
  table_->load();
  for (const auto& [key, attempt] : table_->all()) {
    logs_->add(key, attempt.name, attempt.dir.path());
    if (attempt.ended()) {
      logs_->ended(key);
    }
  }
}

void Agent::start_timers() {
  loop_->every(kLookPeriod, [this] {
    table_->look();
    logs_->tick();
    reconcile_soon();
  });
  loop_->every(kReportPeriod, [this] {
    send_gpus(When::Always);
    repeat_statuses();
  });
  loop_->every(kGuardPeriod, [this] {
    const Result<void> guarded = ensure_guard(config_.state_dir, guard_program(config_.state_dir));
    if (!guarded) {
      log_.error("no guard can be started", {{"why", guarded.error().message}});
    }
  });
  loop_->every(kEvictPeriod, [this] { blobs_->evict(); });
}

// --- the session ---

void Agent::session_opened() {
  v1::AgentFrame frame;
  v1::AgentHello& hello = *frame.mutable_hello();
  hello.set_node(node_file_->node());
  hello.set_agent_version(BMGPU_VERSION);
  hello.set_boot_id(boot_id_);
  hello.set_clock_unix_ms(unix_ms());
  for (const auto& [key, attempt] : table_->all()) {
    *hello.add_attempts() = *attempt.status;
  }
  session_->send(frame);
  sent_inventory_.clear();
  sent_cleanliness_.clear();
  send_inventory();
  send_gpus(When::Always);
  logs_->session_opened();
}

void Agent::take(const v1::MarketFrame& frame) {
  switch (frame.kind_case()) {
    case v1::MarketFrame::kWelcome:
      take_welcome(frame.welcome());
      return;
    case v1::MarketFrame::kDesired:
      take_desired(frame.desired());
      return;
    case v1::MarketFrame::kLogAck:
      logs_->acknowledged(frame.log_ack());
      return;
    case v1::MarketFrame::kStream:
      relay_->take(frame.stream());
      return;
    case v1::MarketFrame::kInventoryAnswer:
      if (!frame.inventory_answer().accepted()) {
        log_.warning("the market does not accept this node's inventory",
                     {{"why", frame.inventory_answer().detail()}});
      }
      return;
    case v1::MarketFrame::KIND_NOT_SET:
      return;  // of a newer market
  }
}

void Agent::take_welcome(const v1::Welcome& welcome) {
  log_.info("in session with the market",
            {{"market", welcome.market()}, {"incarnation", welcome.incarnation()}});
  if (welcome.market() != node_file_->market()) {
    log_.error("this is another market than the one that the node joined",
               {{"joined", node_file_->market()}, {"found", welcome.market()}});
  }
  const std::int64_t offset = unix_ms() - welcome.clock_unix_ms();
  if (offset > kClockOffsetWarnMs || offset < -kClockOffsetWarnMs) {
    log_.warning("the node's clock is not the market's", {{"ahead_ms", offset}});
  }
}

void Agent::take_desired(const v1::Desired& desired) {
  const auto began = std::chrono::steady_clock::now();
  agent_core::DesiredSet offered = to_core(desired);
  v1::AgentFrame frame;
  v1::DesiredAnswer& answer = *frame.mutable_desired_answer();
  answer.set_sequence(desired.sequence());
  if (names_twice(offered)) {
    log_.error("a desired set that names an attempt twice is ignored");
    return;
  }
  const agent_core::Judgement judgement =
      agent_core::judge(in_force_, offered, table_->observed(), Instant(unix_ms()));
  switch (judgement.verdict) {
    case agent_core::Verdict::Ignored:
      log_.info("an older desired set is ignored", {{"sequence", desired.sequence()}});
      return;
    case agent_core::Verdict::Held:
      answer.set_held(true);
      answer.set_detail("it would end " + std::to_string(judgement.ends) + " of the node's " +
                        std::to_string(judgement.jobs) + " jobs at once");
      log_.warning("a desired set is held",
                   {{"sequence", desired.sequence()}, {"why", answer.detail()}});
      break;
    case agent_core::Verdict::InForce:
      in_force_ = std::move(offered);
      desired_ = std::make_unique<v1::Desired>(desired);
      specs_.clear();
      for (const v1::AttemptSpec& spec : desired_->attempts()) {
        if (const auto key = key_of(name_of(spec))) {
          specs_[*key] = &spec;
        }
      }
      reconcile({});
      log_.debug("desired set in force",
                 {{"sequence", desired.sequence()},
                  {"attempts", desired.attempts_size()},
                  {"took_us", std::chrono::duration_cast<std::chrono::microseconds>(
                                  std::chrono::steady_clock::now() - began)
                                  .count()}});
      break;
  }
  session_->send(frame);
}

void Agent::send_status(const Key& key) {
  const Attempt* attempt = table_->find(key);
  if (attempt == nullptr) {
    return;
  }
  v1::AgentFrame frame;
  *frame.mutable_attempt() = *attempt->status;
  session_->send(frame);  // one that gets lost is said again
}

void Agent::send_absent(const Key& key) {
  const auto spec = specs_.find(key);
  if (spec == specs_.end()) {
    return;
  }
  v1::AgentFrame frame;
  v1::AttemptStatus& status = *frame.mutable_attempt();
  status.set_lease(spec->second->lease());
  status.set_rank(spec->second->rank());
  status.set_attempt(spec->second->attempt());
  status.set_incarnation(spec->second->incarnation());
  status.set_phase(v1::ATTEMPT_PHASE_ENDED);
  status.set_end_reason(v1::END_REASON_STOPPED);
  status.set_ended_unix_ms(unix_ms());
  status.set_log_complete(true);
  session_->send(frame);
}

// An end is said until the desired set shows that bmd has taken it up.
void Agent::repeat_statuses() {
  for (const auto& [key, attempt] : table_->all()) {
    if (!attempt.ended() || specs_.contains(key)) {
      send_status(key);
    }
  }
}

void Agent::send_inventory() {
  if (session_ == nullptr || !session_->connected() || !watch_->gpus_known()) {
    return;
  }
  v1::AgentFrame frame;
  *frame.mutable_inventory() = make_inventory(watch_->gpus(), watch_->facts());
  std::string bytes = frame.SerializeAsString();
  if (bytes != sent_inventory_ && session_->send(frame)) {
    sent_inventory_ = std::move(bytes);
  }
}

void Agent::send_gpus(When when) {
  std::set<std::string> held;
  for (const auto& [key, attempt] : table_->all()) {
    if (!attempt.ended() || attempt.shim_alive) {
      held.insert(attempt.gpu_uuids.begin(), attempt.gpu_uuids.end());
    }
  }
  for (const std::string& uuid : use_.held) {
    if (!held.contains(uuid)) {
      use_.released_ms[uuid] = boottime_ms();
    }
  }
  use_.held = std::move(held);
  if (session_ == nullptr || !session_->connected() || !watch_->gpus_known()) {
    return;
  }
  v1::AgentFrame frame;
  *frame.mutable_gpus() = make_gpu_report(watch_->gpus(), use_);
  std::string cleanliness;
  for (const v1::GpuReading& reading : frame.gpus().gpus()) {
    cleanliness += reading.uuid() + (reading.clean() ? "+" : "-") + reading.condition().fault();
  }
  if ((when == When::Always || cleanliness != sent_cleanliness_) && session_->send(frame)) {
    sent_cleanliness_ = std::move(cleanliness);
  }
}

// --- the node ---

void Agent::reconcile_soon() {
  if (!reconcile_posted_) {
    reconcile_posted_ = true;
    loop_->post([this] {
      reconcile_posted_ = false;
      reconcile({});
    });
  }
}

void Agent::reconcile(const std::vector<ContainerInfo>& containers) {
  agent_core::Observed observed{table_->observed(), {}};
  for (const ContainerInfo& container : containers) {
    observed.containers.push_back({container.id, key_of(container.attempt)});
  }
  for (const agent_core::Action& action : agent_core::plan(in_force_, observed)) {
    if (const auto* create = std::get_if<agent_core::CreateAttempt>(&action)) {
      starter_->create(create->key);
      if (const Attempt* attempt = table_->find(create->key); attempt && attempt->on_disk) {
        logs_->add(create->key, attempt->name, attempt->dir.path());
      }
    } else if (const auto* want = std::get_if<agent_core::UpdateWant>(&action)) {
      table_->update_want(want->key, want->lease_end, want->stop);
    } else if (const auto* shim = std::get_if<agent_core::StartShim>(&action)) {
      table_->start_shim(shim->key);
    } else if (const auto* forget = std::get_if<agent_core::Forget>(&action)) {
      logs_->remove(forget->key);
      table_->forget(forget->key);
    } else if (const auto* absent = std::get_if<agent_core::ReportAbsent>(&action)) {
      send_absent(absent->key);
    } else if (const auto* remove = std::get_if<agent_core::RemoveContainer>(&action)) {
      const auto at = std::find_if(containers.begin(), containers.end(),
                                   [&](const auto& c) { return c.id == remove->id; });
      watch_->remove_container(*at);
    }
  }
}

void Agent::status_changed(const Key& key) {
  const Attempt* attempt = table_->find(key);
  if (attempt == nullptr) {
    return;
  }
  if (attempt->on_disk) {
    logs_->add(key, attempt->name, attempt->dir.path());
  }
  if (attempt->ended()) {
    logs_->ended(key);
    await_shim_end(key, kShimEndLooks);
  }
  if (attempt->status->phase() == v1::ATTEMPT_PHASE_RUNNING) {
    watch_->refill_scratch();
  }
  send_status(key);
  reconcile_soon();
}

// The GPUs are clean once the shim has left nothing and the driver shows nothing in use.
void Agent::await_shim_end(const Key& key, int looks) {
  if (looks > 0 && table_->look_for_shim(key)) {
    loop_->after(kShimEndPeriod, [this, key, looks] { await_shim_end(key, looks - 1); });
    return;
  }
  send_gpus(When::Changed);  // notes that the GPUs are released
  // Always: a short job may have come and gone between two reports.
  watch_->refresh_gpus([this] { send_gpus(When::Always); });
  reconcile_soon();
}

Result<std::string> Agent::container_of(const std::string& lease) const {
  for (const auto& [key, attempt] : table_->all()) {
    if (attempt.name.lease == lease && attempt.status->phase() == v1::ATTEMPT_PHASE_RUNNING &&
        watch_->runtime() != nullptr) {
      return container_name(node_file_->market(), attempt.name);
    }
  }
  return Error{ErrorCode::Refused, lease + " does not run on this node now"};
}

}  // namespace bmgpu::agent
