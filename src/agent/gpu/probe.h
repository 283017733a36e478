// GpuProbe: the agent's eyes on its GPUs.
//
// The driver is asked in a worker process of its own (`bm-agent nvml-worker`). A call that does not
// return in time costs that worker its life and the GPU it asked reads Hung; the other GPUs are
// read by the next worker, which is started with a growing delay. Nothing here ever blocks on the
// driver.
//
// Thread-safety: every method may be called from any thread, except from within on_change/on_event.
// The callbacks run on the probe's own thread, one at a time, without a lock held; they must be
// short (post to your own loop).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/gpu/gpu.h"
#include "base/result.h"

namespace bmgpu::agent {

struct GpuProbeOptions {
  // Command that runs the worker, its first word an absolute path. Empty: this executable with
  // "nvml-worker".
  std::vector<std::string> worker_command;
  // "auto": libnvidia-ml.so.1, or with a sim_profile libnvml-sim.so beside this executable's
  // folder; else the path of a library.
  std::string library = "auto";
  std::string sim_profile;  // profile for libnvml-sim.so; empty = none
  // File in which the identities last seen are kept, so that a driver that hangs at the agent's
  // start still reads as hung GPUs and not as none. A card that was taken out reads Lost until this
  // file is removed. Empty = not kept.
  std::string known_file;
  std::chrono::milliseconds sample_period{1000};
  std::chrono::milliseconds call_deadline{3000};   // one GPU's identity or sample
  std::chrono::milliseconds init_deadline{15000};  // loading and initialising the driver
  std::chrono::milliseconds restart_delay_min{200};
  std::chrono::milliseconds restart_delay_max{60'000};
  std::chrono::milliseconds hung_retry{30'000};      // a hung GPU is asked again after this
  std::chrono::milliseconds lost_retry{600'000};     // the driver is opened anew for lost GPUs
  std::chrono::milliseconds xid_probation{600'000};  // a fatal XID gates for this long
  std::function<void(const GpuView&)> on_change;     // a new generation
  std::function<void(const GpuEvent&)> on_event;
};

// Limits: 64 GPUs a node; 4 workers that do not die may be left behind before no further one is
// started (then everything reads Hung); 256 events are kept for take_events().
class GpuProbe {
 public:
  // Starts the probe's thread. Fails only on impossible options; a missing driver is a DriverState.
  static Result<std::unique_ptr<GpuProbe>> start(GpuProbeOptions options);
  ~GpuProbe();  // kills the worker; returns within 100 ms even if the driver hangs
  GpuProbe(const GpuProbe&) = delete;
  GpuProbe& operator=(const GpuProbe&) = delete;

  // The newest view: identities, faults, health and telemetry together. Never waits for the driver.
  GpuView view() const;

  // Waits until a pass over all GPUs that began after this call has ended (or was found to be
  // impossible, see GpuView::driver), at most `limit`, and returns the view then: check
  // taken_boottime_ms of what you need. For `doctor` and for the check that a GPU is clean.
  GpuView refresh(std::chrono::milliseconds limit);

  // Events since the last call, oldest first. Beyond the limit the oldest are dropped and counted.
  struct Events {
    std::vector<GpuEvent> events;
    std::uint64_t dropped = 0;
  };
  Events take_events();

  // For metrics: workers started, killed for being late, and not yet gone after their kill.
  struct Counters {
    std::uint64_t workers_started = 0;
    std::uint64_t workers_killed = 0;
    std::uint64_t workers_abandoned = 0;
  };
  Counters counters() const;

 private:
  class Loop;
  explicit GpuProbe(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

// The entry point of `bm-agent nvml-worker --fd=N --library=auto|PATH`. Never returns while its
// parent lives; 0 when the parent closes the socket.
int nvml_worker_main(int argc, char** argv);

}  // namespace bmgpu::agent
