// A node that is only protocol: joins, says hello, sends its inventory and heartbeats, and takes
// desired sets. By default it lets every job run at once and end when it is not wanted any more.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "bmgpu/v1/agent.pb.h"
#include "integration/bmd_process.h"
#include "wire/client.h"

namespace bmgpu::integration {

struct FakeAgentOptions {
  std::string name = "node-a";
  int joins = 1;  // another number: another join under the same name
  int gpus = 8;
  std::string model = "NVIDIA A100 80GB PCIe";
  std::int64_t memory_mib = 81920;
  std::int64_t clock_offset_ms = 0;
  bool runtime_ok = true;
  bool heartbeats = true;
  bool acknowledges = true;  // heartbeats name the answers that came
  bool clean = true;         // what it says of its GPUs when it connects
  bool runs_jobs = true;     // false: desired sets are only remembered
};

class FakeAgent {
 public:
  // Joins the market. REQUIRES: bmd runs.
  FakeAgent(const BmdProcess& bmd, FakeAgentOptions options);
  ~FakeAgent();

  // Connects session and heartbeats with bmd as it listens now.
  bool connect();
  void disconnect();

  bool send(const v1::AgentFrame& frame);
  void send_status(const v1::AttemptStatus& status);
  void send_log(const std::string& lease, std::uint64_t first, std::uint64_t last, bool complete);

  // Waits for a frame or state change until `holds`; false after 20 s.
  bool wait(const std::function<bool()>& holds);

  // Of the newest desired set; lock-free use only inside wait().
  const v1::Desired& desired() const { return desired_; }
  std::uint64_t log_acknowledged(const std::string& lease) const;
  const v1::Welcome& welcome() const { return welcome_; }
  bool session_open() const { return open_; }
  std::uint64_t heartbeats_answered() const { return answered_; }
  const std::string& node() const { return node_; }
  const std::string& secret() const { return secret_; }

  // exec streams: what came from the market.
  std::function<void(const v1::StreamFrame&)> on_stream;

 private:
  void receive(const std::string& bytes);
  void take(const v1::Desired& desired);
  void beat();
  v1::AttemptStatus status_of(const v1::AttemptSpec& spec, v1::AttemptPhase phase) const;
  std::int64_t clock_ms() const;

  const BmdProcess& bmd_;
  const FakeAgentOptions options_;
  std::string node_;
  std::string secret_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  v1::Desired desired_;
  v1::Welcome welcome_;
  std::map<std::string, v1::AttemptSpec> running_;
  std::map<std::string, std::uint64_t> log_acknowledged_;
  bool open_ = false;
  std::unique_ptr<wire::WebSocketClient> session_;
  std::unique_ptr<wire::WebSocketClient> heart_;
  std::uint64_t sequence_ = 0;
  std::uint64_t last_answer_ = 0;
  std::atomic<std::uint64_t> answered_{0};
  bool stopping_ = false;
  std::thread beats_;
};

}  // namespace bmgpu::integration
