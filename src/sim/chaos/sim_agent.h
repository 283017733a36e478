// `bm-agent run` on virtual time: the real reconcile, and around it what src/agent does: a session,
// a table of attempts, reports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent_core/reconcile.h"
#include "sim/chaos/frames.h"
#include "sim/engine/stream.h"

namespace bmgpu::sim {

class SimNode;

class SimAgent {
 public:
  using Key = agent_core::AttemptKey;

  explicit SimAgent(SimNode& node) : node_(node) {}

  void start();
  void crash(Duration down);  // jobs run on
  void node_dies();
  bool is_running() const { return running_; }

  void received(const std::shared_ptr<Stream>& stream, const MarketFrame& frame);
  void status_changed(const Key& key);  // a shim wrote it
  void gpus_changed();

 private:
  struct Expected {
    Instant end;
    std::vector<std::string> gpu_uuids;
  };
  template <typename Task>
  void after(Duration delay, Task task);
  void every_second();
  void every_five_seconds();

  // The session.
  void connect();
  void connect_later();
  void opened(const std::shared_ptr<Stream>& stream);
  void send(AgentFrame frame);
  void take_desired(const Desired& desired);
  void repeat_later(const Desired& desired);
  void repeat_statuses();
  void send_inventory();
  void send_gpus();
  void send_log_ends();

  // The attempts.
  std::vector<agent_core::ObservedAttempt> observed() const;
  void reconcile_soon();
  void reconcile(const std::vector<agent_core::ObservedContainer>& containers);
  void act(const agent_core::Action& action);
  void create(const Key& key);
  void begin(const Key& key);
  void update_want(const agent_core::UpdateWant& want);
  void look_at_containers();

  SimNode& node_;
  std::uint64_t life_ = 0;
  bool running_ = false;
  std::shared_ptr<Stream> stream_;
  Duration retry_;
  std::optional<agent_core::DesiredSet> in_force_;
  std::map<Key, core::DesiredAttempt> specs_;  // of in_force_
  std::map<Key, Expected> fetching_;           // attempts without a directory yet
  std::map<Key, Instant> spawned_;
  std::optional<Inventory> sent_inventory_;
  bool reconcile_posted_ = false;
};

}  // namespace bmgpu::sim
