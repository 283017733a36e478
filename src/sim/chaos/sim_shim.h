// `bm-agent shim` on virtual time: the real state machine of one attempt and what it acts on.
#pragma once

#include <cstdint>
#include <deque>

#include "agent_core/attempt.h"
#include "agent_core/shim_state.h"
#include "base/time.h"

namespace bmgpu::sim {

class SimNode;
struct AttemptDir;

class SimShim {
 public:
  SimShim(SimNode& node, const agent_core::AttemptKey& key);

  // Takes the attempt up where an earlier shim, if there was one, left it.
  void begin();
  void want_changed();
  void job_ended(std::int32_t exit_code);  // bm-init says so
  bool is_alive() const { return alive_; }
  void die() { alive_ = false; }

 private:
  template <typename Task>
  void after(Duration delay, Task task);
  AttemptDir& dir();
  void adopt();
  void begin_anew();
  void prepare();
  agent_core::ShimWanted wanted();
  void apply(const agent_core::ShimEvent& event);
  void perform(agent_core::ShimAction action);
  void release();
  void report();
  void watch_clock();

  SimNode& node_;
  const agent_core::AttemptKey key_;
  bool alive_ = true;
  bool stepping_ = false;
  std::int64_t tick_at_ns_ = 0;
  agent_core::ShimState state_;
  std::deque<agent_core::ShimEvent> events_;
};

}  // namespace bmgpu::sim
