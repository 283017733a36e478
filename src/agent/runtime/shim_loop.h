// The shim's inside: the loop that turns what it sees into events of the state machine, and the
// state machine's actions into deeds. shim_begin.cc: how it begins, and begins again after kill -9.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "agent/runtime/attempt_dir.h"
#include "agent/runtime/cgroup.h"
#include "agent/runtime/clock.h"
#include "agent/runtime/files.h"
#include "agent/runtime/job_container.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/shim_gate.h"
#include "agent/runtime/timeline.h"
#include "agent_core/shim_state.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

// One line on standard error, which is <attempt folder>/shim.log.
void say(const std::string& text);
void say_failure(const char* what, const Result<void>& outcome);

// One thread runs it; a second one of its own prepares the container, a third one removes it.
class Shim {
 public:
  Shim(AttemptDir dir, v1::ShimOrder order) : dir_(std::move(dir)), order_(std::move(order)) {}
  ~Shim();
  int run();

 private:
  void begin();
  void adopt();
  bool take_memory();
  bool runs_on();
  Result<ContainerState> ask_about_container();
  void adopt_ended(const ContainerState& container);
  void begin_anew();
  void take(int pid);
  void turn();
  void apply(const agent_core::ShimEvent& event) { apply(event, boot_now_ns()); }
  void apply(const agent_core::ShimEvent& event, std::int64_t at_ns);
  void perform(agent_core::ShimAction action);
  void release();
  void kill_all();
  void remove_all();
  void report();
  // Empty: it is the same as before.
  std::optional<agent_core::ShimWanted> read_want();
  void take_want();
  void keep_house();
  void on_gate();
  void on_gate_message(const GateMessage& message);
  void on_job_message(GateEnded end);
  void on_exit();
  void on_worker();
  void post(std::string progress);
  std::string command_name() const;

  const AttemptDir dir_;
  const v1::ShimOrder order_;
  v1::ShimMemory memory_;
  v1::AttemptStatus status_;
  std::string want_bytes_;
  agent_core::ShimState state_;
  std::deque<agent_core::ShimEvent> events_;

  Fd wake_;  // the worker has something
  Fd timer_;
  Fd notify_;
  Fd pid_fd_;  // process 1 of the container
  std::optional<Gate> gate_;
  std::optional<JobCgroup> cgroup_;
  std::int64_t devices_due_ns_ = 0;
  bool unreported_ = false;  // the status could not be written

  std::future<Result<void>> removal_;

  std::thread worker_;
  Timeline timeline_;
  Preparation shared_;
  std::mutex mutex_;  // guards the next two
  std::deque<std::string> progress_;
  std::optional<std::optional<agent_core::ShimFailed>> outcome_;  // of start_job()
};

}  // namespace bmgpu::agent
