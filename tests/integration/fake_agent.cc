#include "integration/fake_agent.h"

#include "base/check.h"
#include "wire/encoding.h"
#include "wire/join_token.h"

namespace bmgpu::integration {
namespace {

using namespace std::chrono_literals;

std::string bytes_of(const google::protobuf::Message& message) {
  return wire::encode(wire::Encoding::Proto, message);
}

}  // namespace

FakeAgent::FakeAgent(const BmdProcess& bmd, FakeAgentOptions options)
    : bmd_(bmd), options_(std::move(options)) {
  const std::string key = options_.name + "-" + std::to_string(options_.joins);
  v1::CreateTokenRequest create;
  create.set_role(v1::ROLE_NODE_JOIN);
  create.set_node(options_.name);
  v1::CreateTokenResponse created;
  const Result<void> made = bmd.operator_client()->call("bmgpu.v1.Market/CreateToken", create,
                                                        created, "join-" + key);
  check(made.ok(), "fake agent: no join token");
  const Result<v1::JoinToken> token = wire::decode_join_token(created.secret());
  check(token.ok(), "fake agent: a join token that cannot be read");
  v1::JoinRequest join;
  join.set_node_name(options_.name);
  v1::JoinResponse joined;
  const Result<void> done =
      bmd.client(token->secret())->call("bmgpu.v1.Agent/Join", join, joined, "j-" + key);
  check(done.ok(), "fake agent: cannot join");
  node_ = joined.node();
  secret_ = joined.secret();
}

FakeAgent::~FakeAgent() { disconnect(); }

std::int64_t FakeAgent::clock_ms() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count() +
         options_.clock_offset_ms;
}

bool FakeAgent::connect() {
  disconnect();
  stopping_ = false;
  Result<std::unique_ptr<wire::WebSocketClient>> session =
      wire::WebSocketClient::connect(bmd_.endpoint(secret_), "bmgpu.v1.Agent/Session",
                                     {[this](const std::string& bytes) { receive(bytes); },
                                      [this](const Error&) {
                                        const std::lock_guard lock(mutex_);
                                        open_ = false;
                                        changed_.notify_all();
                                      }},
                                     5s);
  if (!session) {
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    session_ = std::move(*session);
    open_ = true;
  }
  if (options_.heartbeats) {
    Result<std::unique_ptr<wire::WebSocketClient>> heart =
        wire::WebSocketClient::connect(bmd_.heartbeat_endpoint(secret_), "bmgpu.v1.Agent/Heartbeat",
                                       {[this](const std::string& bytes) {
                                          v1::HeartbeatAnswer answer;
                                          if (wire::decode_answer(bytes, answer)) {
                                            const std::lock_guard lock(mutex_);
                                            last_answer_ = answer.sequence();
                                            ++answered_;
                                            changed_.notify_all();
                                          }
                                        },
                                        [](const Error&) {}},
                                       5s);
    if (!heart) {
      return false;
    }
    heart_ = std::move(*heart);
    beats_ = std::thread([this] { beat(); });
  }
  v1::AgentFrame hello;
  hello.mutable_hello()->set_node(node_);
  hello.mutable_hello()->set_agent_version("fake");
  hello.mutable_hello()->set_boot_id("boot-1");
  hello.mutable_hello()->set_clock_unix_ms(clock_ms());
  v1::AgentFrame frame;
  v1::Inventory& inventory = *frame.mutable_inventory();
  inventory.set_cpu_millis(128'000);
  inventory.set_memory_mib(1'048'576);
  inventory.set_scratch_mib(4'194'304);
  inventory.set_simulated_driver(true);
  for (int i = 0; i < options_.gpus; ++i) {
    v1::InventoryGpu& gpu = *inventory.add_gpus();
    gpu.set_uuid("GPU-" + options_.name + "-" + std::to_string(i));
    gpu.set_model(options_.model);
    gpu.set_form("PCIe");
    gpu.set_memory_mib(options_.memory_mib);
    gpu.mutable_condition()->set_ok(true);
    gpu.mutable_condition()->set_health(100);
  }
  v1::Gate& gate = *inventory.add_gates();
  gate.set_name("runtime");
  gate.set_open(options_.runtime_ok);
  gate.set_detail(options_.runtime_ok ? "podman" : "podman does not answer");
  v1::AgentFrame clean;
  for (const v1::InventoryGpu& gpu : inventory.gpus()) {
    v1::GpuReading& reading = *clean.mutable_gpus()->add_gpus();
    reading.set_uuid(gpu.uuid());
    reading.set_clean(options_.clean);
    *reading.mutable_condition() = gpu.condition();
  }
  return send(hello) && send(frame) && send(clean);
}

void FakeAgent::disconnect() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (beats_.joinable()) {
    beats_.join();
  }
  heart_.reset();
  std::unique_ptr<wire::WebSocketClient> session;
  {
    const std::lock_guard lock(mutex_);
    session = std::move(session_);
  }
  session.reset();
}

bool FakeAgent::send(const v1::AgentFrame& frame) {
  const std::lock_guard lock(mutex_);
  return session_ && session_->send(bytes_of(frame));
}

void FakeAgent::send_status(const v1::AttemptStatus& status) {
  v1::AgentFrame frame;
  *frame.mutable_attempt() = status;
  send(frame);
}

void FakeAgent::send_log(const std::string& lease, std::uint64_t first, std::uint64_t last,
                         bool complete) {
  v1::AgentFrame frame;
  v1::LogAppend& log = *frame.mutable_log();
  log.set_lease(lease);
  log.set_attempt(1);
  log.set_complete(complete);
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    v1::LogLine& line = *log.add_lines();
    line.set_sequence(sequence);
    line.set_stream(v1::LOG_STREAM_STDOUT);
    line.set_text("line " + std::to_string(sequence));
  }
  send(frame);
}

bool FakeAgent::wait(const std::function<bool()>& holds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, 20s, holds);
}

std::uint64_t FakeAgent::log_acknowledged(const std::string& lease) const {
  const auto found = log_acknowledged_.find(lease);
  return found == log_acknowledged_.end() ? 0 : found->second;
}

void FakeAgent::receive(const std::string& bytes) {
  v1::MarketFrame frame;
  check(wire::decode_answer(bytes, frame).ok(), "fake agent: a frame that cannot be read");
  if (frame.has_stream() && on_stream) {
    on_stream(frame.stream());
  }
  if (frame.has_desired() && options_.runs_jobs) {
    take(frame.desired());
  }
  const std::lock_guard lock(mutex_);
  if (frame.has_welcome()) {
    welcome_ = frame.welcome();
  } else if (frame.has_desired()) {
    desired_ = frame.desired();
  } else if (frame.has_log_ack()) {
    log_acknowledged_[frame.log_ack().lease()] = frame.log_ack().next_sequence();
  }
  changed_.notify_all();
}

v1::AttemptStatus FakeAgent::status_of(const v1::AttemptSpec& spec, v1::AttemptPhase phase) const {
  v1::AttemptStatus status;
  status.set_lease(spec.lease());
  status.set_rank(spec.rank());
  status.set_attempt(spec.attempt());
  status.set_incarnation(spec.incarnation());
  status.set_phase(phase);
  return status;
}

void FakeAgent::take(const v1::Desired& desired) {
  std::map<std::string, v1::AttemptSpec> wanted;
  for (const v1::AttemptSpec& spec : desired.attempts()) {
    if (spec.stop()) {
      running_.emplace(spec.lease(), spec);  // whether it ran or not: its end is said below
      continue;
    }
    wanted[spec.lease()] = spec;
    if (running_.emplace(spec.lease(), spec).second) {
      v1::AttemptStatus status = status_of(spec, v1::ATTEMPT_PHASE_RUNNING);
      status.set_running_since_unix_ms(clock_ms());
      send_status(status);
    }
  }
  for (auto at = running_.begin(); at != running_.end();) {
    if (wanted.contains(at->first)) {
      ++at;
      continue;
    }
    v1::AttemptStatus status = status_of(at->second, v1::ATTEMPT_PHASE_ENDED);
    status.set_end_reason(v1::END_REASON_STOPPED);
    status.set_ended_unix_ms(clock_ms());
    send_status(status);
    v1::AgentFrame frame;
    for (const std::string& uuid : at->second.gpu_uuids()) {
      v1::GpuReading& reading = *frame.mutable_gpus()->add_gpus();
      reading.set_uuid(uuid);
      reading.set_clean(true);
      reading.mutable_condition()->set_ok(true);
      reading.mutable_condition()->set_health(100);
    }
    send(frame);
    at = running_.erase(at);
  }
}

void FakeAgent::beat() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    v1::Heartbeat heartbeat;
    heartbeat.set_node(node_);
    heartbeat.set_sequence(++sequence_);
    heartbeat.set_last_answer_sequence(options_.acknowledges ? last_answer_ : 0);
    heartbeat.set_sent_boottime_ns(1);
    heartbeat.set_clock_unix_ms(clock_ms());
    lock.unlock();
    heart_->send(bytes_of(heartbeat));
    lock.lock();
    changed_.wait_for(lock, 200ms, [this] { return stopping_; });
  }
}

}  // namespace bmgpu::integration
