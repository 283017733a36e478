#include "agent/runtime/job_container.h"

#include <poll.h>

#include <algorithm>

#include "agent/runtime/container.h"
#include "agent/runtime/service.h"
#include "agent/runtime/shim_job.h"
#include "agent/runtime/shim_loop.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

using agent_core::EndCause;
using agent_core::ShimFailed;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kServiceDeadline{15};
constexpr std::chrono::seconds kAnswerDeadline{60};
constexpr std::chrono::minutes kPullDeadline{60};
constexpr std::chrono::seconds kRemoveDeadline{30};
constexpr int kNameTries = 50;
constexpr milliseconds kNamePause{100};
constexpr int kMakingTries = 20;  // so long, and longer, a container may take to be made
constexpr int kDeviceTries = 6;
constexpr milliseconds kDevicePause{40};
constexpr int kEngineTries = 8;
constexpr milliseconds kEnginePauseMin{100};
constexpr milliseconds kEnginePauseMax{2000};
constexpr std::chrono::seconds kEngineLimit{120};

bool name_is_taken(const Result<std::string>& created) {
  return !created.ok() && created.error().message.find("in use") != std::string::npos;
}

}  // namespace

Podman JobContainer::engine() const {
  return Podman(service_socket(order_.runtime()), kAnswerDeadline);
}

// It did not answer, or went away before it had.
bool JobContainer::of_the_engine(const Error& error) const {
  return error.code == ErrorCode::Unavailable || error.code == ErrorCode::DeadlineExceeded;
}

// The engine reads all CDI files at each start, and one that vanishes meanwhile (of another agent
// of this host) makes it find none. What it then cannot resolve it takes for a path.
bool JobContainer::about_devices(const Error& error) const {
  return error.message.find("CDI") != std::string::npos ||
         std::any_of(order_.devices().begin(), order_.devices().end(), [&](const auto& device) {
           return error.message.find(device.cdi_name()) != std::string::npos;
         });
}

void JobContainer::pause(milliseconds length) const {
  constexpr milliseconds kSlice{50};
  for (milliseconds left = length; left.count() > 0 && !shared_.cancel; left -= kSlice) {
    ::poll(nullptr, 0, static_cast<int>(std::min(left, kSlice).count()));
  }
}

// Waits and says yes, or says no: not a fault of the host's, too often, too late, or not wanted.
bool JobContainer::again(const Error& error) {
  if (shared_.cancel) {
    return false;
  }
  if (about_devices(error)) {
    pause(kDevicePause);
    return ++device_failures_ < kDeviceTries;
  }
  if (!of_the_engine(error)) {
    return false;
  }
  const Clock::time_point now = Clock::now();
  give_up_at_ = give_up_at_.value_or(now + kEngineLimit);
  if (++engine_failures_ == kEngineTries || now >= *give_up_at_) {
    return false;
  }
  say("the engine failed, trying again: " + error.message);
  pause(std::min(kEnginePauseMin * (1 << (engine_failures_ - 1)), kEnginePauseMax));
  return !shared_.cancel;
}

ShimFailed JobContainer::failure(const Error& error) const {
  if (about_devices(error)) {
    return {EndCause::DeviceCheckFailed, error.message};  // the node's fault, not the image's
  }
  if (of_the_engine(error)) {
    return {EndCause::StartFailed,
            "the container engine of " + order_.node() + " failed (not the job; tried " +
                std::to_string(engine_failures_) + " times): " + error.message};
  }
  if (error.message.find("no space left on device") != std::string::npos) {
    return {EndCause::StartFailed, "the disk of " + order_.node() + " is full: " + error.message};
  }
  return {EndCause::StartFailed, error.message};
}

// The image is there, or is fetched.
Result<void> JobContainer::ensure_image(const Podman& podman) const {
  const std::string& image = order_.spec().job().image();
  const Result<bool> present = podman.image_exists(image);
  if (!present.ok()) {
    return present.error();
  }
  if (*present) {
    return {};
  }
  on_progress_("image: fetching " + image);
  const Result<void> pulled = podman.pull(
      image, kPullDeadline, shared_.cancel,
      [&](const std::string& words) { on_progress_("image: " + words.substr(0, 200)); });
  if (!pulled.ok()) {
    return Error{pulled.error().code, "image " + image + ": " + pulled.error().message};
  }
  return {};
}

Result<void> JobContainer::free_name(const Podman& podman, const std::string& name,
                                     int tries) const {
  const Result<void> gone = destroy_container(order_.runtime(), podman, name, kRemoveDeadline);
  // Still taken, though by no container that the engine knows: an engine that was killed in the
  // middle left the storage of one. Not at once, because one that is being made looks the same.
  return gone.ok() && tries >= kMakingTries ? podman.remove(name) : gone;
}

Result<void> JobContainer::try_create() {
  if (Result<void> service = ensure_service(order_.runtime(), kServiceDeadline); !service.ok()) {
    return service;
  }
  const Podman podman = engine();
  const v1::JobSpec& job = order_.spec().job();
  if (Result<void> there = ensure_image(podman); !there.ok()) {
    return there;
  }
  timeline_.mark("image");
  // The engine adds up the sizes of all layers for this answer: asked for only if it is needed.
  Result<ImageConfig> image = ImageConfig();
  if (job.command().empty() || job.workdir_size() > 0) {
    image = podman.inspect_image(job.image());
  }
  if (!image.ok()) {
    return image.error();
  }
  const ContainerSpec spec = container_spec(order_, dir_, *image);
  if (spec.command.empty()) {
    return Error{ErrorCode::InvalidArgument,
                 "image " + spec.image + " names no command; give one with --command"};
  }
  on_progress_("container");
  Result<std::string> id = podman.create(spec);
  // A predecessor's last request, or an earlier one of ours that was cut off, may have been served,
  // or be served just now.
  for (int tries = 0; tries < kNameTries && name_is_taken(id) && !shared_.cancel; ++tries) {
    pause(kNamePause);
    if (Result<void> gone = free_name(podman, spec.name, tries); !gone.ok()) {
      return gone;
    }
    id = podman.create(spec);
  }
  if (!id.ok()) {
    return id.error();
  }
  id_ = *id;
  image_user_ = image->user;
  return {};
}

std::optional<ShimFailed> JobContainer::create() {
  while (true) {
    const Result<void> created = try_create();
    if (created.ok()) {
      return std::nullopt;
    }
    if (!again(created.error())) {
      return failure(created.error());
    }
  }
}

// One that was cut off in the middle of a start may run by now, or be of no use any more.
Result<void> JobContainer::start_once() {
  if (cut_off_) {
    if (shared_.process1 == Process1::Came) {
      return {};
    }
    if (Result<void> service = ensure_service(order_.runtime(), kServiceDeadline); !service.ok()) {
      return service;
    }
    const Result<ContainerState> state = engine().inspect(id_);
    if (!state.ok()) {
      return state.error();
    }
    if (state->running) {
      return {};
    }
    if (state->ended()) {
      return Error{ErrorCode::Internal, "the container ended before the job was released"};
    }
  }
  const Result<void> started = engine().start(id_);
  if (started.ok()) {
    return {};
  }
  if (of_the_engine(started.error())) {
    cut_off_ = true;
    return started;
  }
  if (!cut_off_ || about_devices(started.error())) {
    return started;
  }
  // What the dead engine left of it is in the way.
  Process1 awaited = Process1::Awaited;
  if (!shared_.process1.compare_exchange_strong(awaited, Process1::Replaced)) {
    return {};
  }
  say("a half-started container is replaced: " + started.error().message);
  if (Result<void> gone = destroy_container(order_.runtime(), engine(), id_, kRemoveDeadline);
      !gone.ok()) {
    return gone;
  }
  cut_off_ = false;
  if (Result<void> created = try_create(); !created.ok()) {
    return created;
  }
  shared_.process1 = Process1::Awaited;
  return start_once();
}

std::optional<ShimFailed> JobContainer::start() {
  while (true) {
    const Result<void> started = start_once();
    if (started.ok()) {
      return std::nullopt;
    }
    if (!again(started.error())) {
      return failure(started.error());
    }
  }
}

}  // namespace bmgpu::agent
