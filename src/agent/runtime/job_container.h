// A job's container: made and started, however often the engine dies meanwhile. A service that is
// killed, restarted or frozen is the host's fault and no reason to end a job: what it was asked is
// asked again, by a new service if need be.
//
// Bounds: 8 tries and, between the first failure and the last try, 120 s of the monotonic clock.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agent/runtime/attempt_dir.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/timeline.h"
#include "agent_core/shim_state.h"
#include "base/result.h"

namespace bmgpu::agent {

using OnProgress = std::function<void(const std::string&)>;

// Process 1 of the container, between the thread that starts it and the one that it comes to.
// Awaited → Came is the second one's step, Awaited → Replaced (and back) the first one's: what an
// engine that died says of a container is not to be believed, and one whose process 1 has come must
// not be replaced any more.
enum class Process1 { Awaited, Came, Replaced };

// What the thread that makes a container shares with the one that waits for its process 1.
struct Preparation {
  std::atomic<bool> cancel{false};
  std::atomic<Process1> process1{Process1::Awaited};
};

// One thread. Everything that it is given must outlive it.
class JobContainer {
 public:
  JobContainer(const v1::ShimOrder& order, const AttemptDir& dir, Preparation& shared,
               const OnProgress& on_progress, Timeline& timeline)
      : order_(order), dir_(dir), shared_(shared), on_progress_(on_progress), timeline_(timeline) {}

  // Fetches the image if need be and makes the container, which must not have been started; one of
  // its name that is there is replaced. Empty: done.
  std::optional<agent_core::ShimFailed> create();

  // Starts it. Empty: its process 1 was started, once, and may have ended since.
  // REQUIRES: create() succeeded, and what it mounts is there.
  std::optional<agent_core::ShimFailed> start();

  // Whom the image runs as; empty if that was not asked for (no working directory, own command).
  const std::string& image_user() const { return image_user_; }

 private:
  using Clock = std::chrono::steady_clock;
  Result<void> try_create();
  Result<void> free_name(const Podman& podman, const std::string& name, int tries) const;
  Result<void> start_once();
  Result<void> ensure_image(const Podman& podman) const;
  Podman engine() const;
  bool of_the_engine(const Error& error) const;
  bool about_devices(const Error& error) const;
  bool again(const Error& error);
  agent_core::ShimFailed failure(const Error& error) const;
  void pause(std::chrono::milliseconds length) const;

  const v1::ShimOrder& order_;
  const AttemptDir& dir_;
  Preparation& shared_;
  const OnProgress& on_progress_;
  Timeline& timeline_;
  std::string id_;
  std::string image_user_;
  bool cut_off_ = false;  // a start was, so that the engine may have got half way
  int engine_failures_ = 0;
  int device_failures_ = 0;
  std::optional<Clock::time_point> give_up_at_;
};

}  // namespace bmgpu::agent
