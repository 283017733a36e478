// `bm-agent run`: the node's service. Wires the parts together; what they decide is theirs.
//
// It owns nothing that a job needs: shims supervise jobs, the guard holds the permission. Killed
// and started again it takes everything up from <state_dir> (docs/reference/bm-agent.md).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/attempt_starter.h"
#include "agent/attempt_table.h"
#include "agent/blob_cache.h"
#include "agent/config.h"
#include "agent/event_loop.h"
#include "agent/exec_relay.h"
#include "agent/log_forwarder.h"
#include "agent/node_watch.h"
#include "agent/process_lock.h"
#include "agent/session.h"
#include "agent_core/reconcile.h"
#include "base/result.h"

namespace bmgpu::v1 {
class AttemptSpec;
class Desired;
class MarketFrame;
class NodeFile;
class Welcome;
}  // namespace bmgpu::v1

namespace bmgpu::agent {

std::string agent_lock_path(const std::string& state_dir);

class Agent {
 public:
  // Fails if this machine is in no market, or another agent of this state folder runs.
  static Result<std::unique_ptr<Agent>> create(const AgentConfig& config, wire::Log& log);
  ~Agent();

  // Until SIGTERM or SIGINT. Jobs run on.
  void run();

 private:
  using Key = agent_core::AttemptKey;
  Agent(const AgentConfig& config, const v1::NodeFile& node, wire::Log& log,
        std::unique_ptr<EventLoop> loop);
  Result<void> start();
  void take_up_attempts();
  void start_timers();

  // Session.
  void session_opened();
  void take(const v1::MarketFrame& frame);
  void take_welcome(const v1::Welcome& welcome);
  void take_desired(const v1::Desired& desired);
  void send_status(const Key& key);
  void send_absent(const Key& key);
  void send_inventory();
  enum class When { Changed, Always };
  void send_gpus(When when);
  void repeat_statuses();

  // The node.
  void reconcile(const std::vector<ContainerInfo>& containers);
  void reconcile_soon();
  void status_changed(const Key& key);
  void await_shim_end(const Key& key, int looks);
  Result<std::string> container_of(const std::string& lease) const;

  const AgentConfig config_;
  const std::unique_ptr<v1::NodeFile> node_file_;
  const std::string boot_id_;
  wire::Log& log_;
  std::unique_ptr<EventLoop> loop_;
  std::optional<ProcessLock> lock_;
  Fd signals_;

  std::optional<agent_core::DesiredSet> in_force_;
  std::unique_ptr<v1::Desired> desired_;         // the message of the set in force
  std::map<Key, const v1::AttemptSpec*> specs_;  // in it
  bool reconcile_posted_ = false;
  std::string sent_inventory_;  // of this session
  std::string sent_cleanliness_;
  GpuUse use_;
  // Destroyed in the reverse order: first those whose threads call back.
  std::unique_ptr<AttemptTable> table_;
  std::unique_ptr<LogForwarder> logs_;
  std::unique_ptr<ExecRelay> relay_;
  std::unique_ptr<BlobCache> blobs_;
  std::unique_ptr<NodeWatch> watch_;
  std::unique_ptr<AttemptStarter> starter_;
  std::unique_ptr<Session> session_;
};

}  // namespace bmgpu::agent
