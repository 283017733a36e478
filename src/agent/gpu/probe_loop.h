// The thread behind GpuProbe. Passes (enumerate, sample each GPU) are in probe_pass.cc, the thread,
// its waits and what others see of it in probe_loop.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/gpu/probe.h"
#include "agent/gpu/worker_process.h"

namespace bmgpu::agent {

class GpuProbe::Loop {
 public:
  explicit Loop(GpuProbeOptions options);
  ~Loop();

  GpuView view() const;
  GpuView refresh(std::chrono::milliseconds limit);
  Events take_events();
  Counters counters() const;

 private:
  struct Known {
    GpuIdentity identity;
    std::optional<std::uint32_t> index;  // as last enumerated; indices can shift
    bool watched = false;                // named and registered for events by the present worker
    GpuFault fault = GpuFault::Lost;
    std::string detail = "it was not seen since the agent started";
    GpuTelemetry telemetry;
    std::int64_t skip_until_ms = 0;  // after it cost a worker its life
    int times_skipped = 0;
    int deaths = 0;  // of workers while they asked for it, one after the other
    std::uint64_t fatal_xid = 0;
    std::int64_t xid_until_ms = 0;
  };
  enum class Asked { Answered, Late, Died, Stopping };

  void run();
  void wait(bool complete);
  void publish();
  void keep_known();
  void note_event(const WorkerFrame& frame);
  std::int64_t next_due_ms(bool complete) const;

  // One look at everything. False: cut short because the worker had to be replaced.
  bool pass();
  bool ensure_worker();
  void open_worker();
  bool enumerate();
  bool identify(std::uint32_t index);
  bool watch(Known& gpu);
  bool sample_all();
  bool sample(Known& gpu);
  // Asks the worker. On anything but an answer the worker is gone, and `culprit` (may be null) is
  // marked and left alone for a while.
  Asked ask(const WorkerRequest& request, std::chrono::milliseconds limit, Known* culprit,
            WorkerFrame& frame);
  void driver_failed(DriverState state, const std::string& detail);
  void skip(Known& gpu, GpuFault fault, const std::string& detail);
  void drop_worker();
  void delay_restart();
  bool condemned_full();
  Known* known_at(std::uint32_t index);

  const GpuProbeOptions options_;
  const int wake_fd_;
  std::atomic<bool> stopping_{false};

  // Of the loop's thread alone.
  std::unique_ptr<WorkerProcess> worker_;
  std::vector<CondemnedProcess> condemned_;
  std::map<std::string, Known> known_;                 // by UUID
  std::map<std::uint32_t, std::int64_t> skip_index_;   // unnamed GPUs that hang → until
  std::map<std::uint32_t, std::string> unidentified_;  // index → why
  DriverState driver_ = DriverState::Starting;
  std::string driver_detail_;
  std::string driver_version_;
  bool simulated_;  // as configured until a library has said so itself
  std::int64_t restart_at_ms_ = 0;
  std::chrono::milliseconds restart_delay_;
  std::int64_t opened_ms_ = 0;
  std::int64_t enumerate_at_ms_ = 0;
  std::int64_t pass_began_ms_ = 0;
  std::vector<GpuIdentity> kept_;  // as in the known file

  mutable std::mutex mutex_;  // everything below
  std::condition_variable passed_;
  GpuView view_;
  Counters counters_;
  std::deque<GpuEvent> events_;
  std::uint64_t events_dropped_ = 0;
  std::uint64_t passes_begun_ = 0;
  std::uint64_t pass_completed_ = 0;
  bool refresh_wanted_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace bmgpu::agent
