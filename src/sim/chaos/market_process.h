// One life of bmd: the loop of src/controld on virtual time, with the real core, the real journal
// interface and the real heartbeat arithmetic. A turn decides and applies what waits in the inbox,
// appends it in one commit, and only then sends; a crash may come in each gap.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/chaos/node_desk.h"
#include "sim/chaos/world.h"
#include "store/journal.h"

namespace bmgpu::sim {

class MarketProcess {
 public:
  using Work = std::function<void()>;
  using Answer = std::function<void(const Reply&)>;

  MarketProcess(World& world, std::uint64_t life);
  ~MarketProcess();

  // Opens the disk, replays, and begins to turn.
  void start();
  // Does not run until `until`.
  void pause(Instant until) { paused_until_ = until; }

  NodeDesk& nodes() { return desk_; }
  void take(const Request& request, Answer answer);
  void post(Work work);  // for the next turn

  // In a turn.
  core::Answer execute(const core::Command& command);
  void after_commit(Work send) { sends_.push_back(std::move(send)); }
  void sync(NodeId node) { to_sync_.insert(node); }
  bool writable() const { return writable_; }
  const core::State& state() const { return state_; }
  Incarnation incarnation() const { return incarnation_; }

 private:
  void schedule_turn();
  void turn();
  void commit();
  void send_all(std::optional<TurnDeath> death);
  void reload();
  void probe();
  void snapshot_if_due();
  void apply(const core::Event& event);
  bool look_for_gap();
  void answer_request(const Request& request, const Answer& answer);
  Reply decide_request(const Request& request);
  Reply reply_to(const core::Answer& answer) const;

  World& world_;
  const std::uint64_t life_;
  std::unique_ptr<store::Journal> journal_;
  core::State state_;
  Incarnation incarnation_;
  Sequence last_;
  Sequence snapshot_;
  bool writable_ = true;
  Instant last_turn_;
  Instant last_tick_;
  Instant last_probe_;
  Instant paused_until_;
  bool turning_ = false;
  std::uint64_t turn_number_ = 0;  // of the scheduled one; an older one that comes does nothing
  Instant turn_at_;
  std::vector<Work> inbox_;
  store::Batch batch_;
  std::uint64_t digest_before_ = 0;  // of the state when the turn began, if it shall die
  std::vector<Work> sends_;
  std::set<NodeId> to_sync_;
  NodeDesk desk_;
};

}  // namespace bmgpu::sim
