#include "agent/gpu/probe_loop.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/gpu/health.h"
#include "agent/gpu/known_gpus.h"
#include "agent/host/facts.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kEventsMax = 256;
constexpr int kFarewellMs = 50;

// Whether anything but telemetry and health differs.
bool same_but_telemetry(const GpuView& a, const GpuView& b) {
  return a.driver == b.driver && a.detail == b.detail && a.driver_version == b.driver_version &&
         a.simulated == b.simulated &&
         std::equal(a.gpus.begin(), a.gpus.end(), b.gpus.begin(), b.gpus.end(),
                    [](const GpuState& x, const GpuState& y) {
                      return x.identity == y.identity && x.fault == y.fault && x.detail == y.detail;
                    });
}

}  // namespace

GpuProbe::Loop::Loop(GpuProbeOptions options)
    : options_(std::move(options)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      simulated_(!options_.sim_profile.empty()),
      restart_delay_(options_.restart_delay_min) {
  check(wake_fd_ >= 0, "GpuProbe: no eventfd");
  if (!options_.known_file.empty()) {
    // A file that is missing or damaged is as good as none: it is written anew.
    if (Result<std::vector<GpuIdentity>> known = load_known_gpus(options_.known_file)) {
      for (GpuIdentity& identity : *known) {
        const std::string uuid = identity.uuid;
        known_[uuid].identity = identity;
        kept_.push_back(std::move(identity));
      }
    }
  }
  thread_ = std::thread([this] { run(); });
}

GpuProbe::Loop::~Loop() {
  stopping_ = true;
  eventfd_write(wake_fd_, 1);
  thread_.join();
  close(wake_fd_);
}

void GpuProbe::Loop::run() {
  pthread_setname_np(pthread_self(), "gpu-probe");
  publish();
  while (!stopping_) {
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++passes_begun_;
      refresh_wanted_ = false;
    }
    pass_began_ms_ = boottime_ms();
    const bool complete = pass();
    if (stopping_) {
      break;
    }
    keep_known();
    publish();
    if (complete) {
      const std::lock_guard lock(mutex_);
      pass_completed_ = number;
      passed_.notify_all();
    }
    wait(complete);
  }
  drop_worker();
  for (CondemnedProcess& process : condemned_) {
    process.gone(kFarewellMs);
  }
}

std::int64_t GpuProbe::Loop::next_due_ms(bool complete) const {
  if (!complete) {
    return restart_at_ms_;
  }
  const std::lock_guard lock(mutex_);
  return refresh_wanted_ ? 0 : pass_began_ms_ + options_.sample_period.count();
}

void GpuProbe::Loop::wait(bool complete) {
  while (!stopping_) {
    const std::int64_t left_ms = next_due_ms(complete) - boottime_ms();
    if (left_ms <= 0) {
      return;
    }
    std::array<pollfd, 2> fds = {
        {{wake_fd_, POLLIN, 0}, {worker_ ? worker_->fd() : -1, POLLIN, 0}}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(left_ms, 1000)));
    if ((fds[0].revents & POLLIN) != 0) {
      eventfd_t woken = 0;
      eventfd_read(wake_fd_, &woken);
    }
    if (fds[1].revents != 0) {
      std::optional<WorkerFrame> frame;
      if (!worker_->take_event(frame)) {
        drop_worker();  // it died by itself; the next pass starts another
        delay_restart();
      } else if (frame && frame->op == WorkerOp::Event) {
        note_event(*frame);
        publish();
      }
    }
  }
}

void GpuProbe::Loop::note_event(const WorkerFrame& frame) {
  const GpuEvent event{frame.uuid.get(), frame.event_kind, frame.event_data,
                       frame.event_boottime_ms};
  if (const auto gpu = known_.find(event.uuid);
      gpu != known_.end() && event.kind == GpuEventKind::Xid && xid_is_fatal(event.data)) {
    gpu->second.fatal_xid = event.data;
    gpu->second.xid_until_ms = boottime_ms() + options_.xid_probation.count();
  }
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    if (events_.size() > kEventsMax) {
      events_.pop_front();
      ++events_dropped_;
    }
  }
  if (options_.on_event) {
    options_.on_event(event);
  }
}

void GpuProbe::Loop::publish() {
  GpuView view;
  view.driver = driver_;
  view.detail = driver_detail_;
  for (const auto& [index, why] : unidentified_) {
    view.detail += (view.detail.empty() ? "" : "; ") + std::string("GPU number ") +
                   std::to_string(index) + " cannot be identified: " + why;
  }
  view.driver_version = driver_version_;
  view.simulated = simulated_;
  const std::int64_t now_ms = boottime_ms();
  for (const auto& [uuid, known] : known_) {
    HealthInputs inputs{known.fault, known.detail, known.telemetry, std::nullopt};
    if (now_ms < known.xid_until_ms) {
      inputs.fatal_xid = known.fatal_xid;
    }
    GpuState gpu;
    gpu.identity = known.identity;
    gpu.telemetry = known.telemetry;
    judge(inputs, gpu);
    view.gpus.push_back(std::move(gpu));
  }
  std::sort(view.gpus.begin(), view.gpus.end(), [](const GpuState& a, const GpuState& b) {
    return std::tie(a.identity.pci_bus_id, a.identity.uuid) <
           std::tie(b.identity.pci_bus_id, b.identity.uuid);
  });
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    changed = !same_but_telemetry(view, view_);
    view.generation = view_.generation + (changed ? 1 : 0);
    view_ = view;
    counters_.workers_abandoned = condemned_.size();
  }
  if (changed && options_.on_change) {
    options_.on_change(view);
  }
}

void GpuProbe::Loop::keep_known() {
  if (options_.known_file.empty()) {
    return;
  }
  std::vector<GpuIdentity> now;
  for (const auto& [uuid, known] : known_) {
    now.push_back(known.identity);
  }
  if (now != kept_ && save_known_gpus(options_.known_file, now).ok()) {
    kept_ = std::move(now);
  }
}

GpuView GpuProbe::Loop::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

GpuView GpuProbe::Loop::refresh(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = passes_begun_ + 1;
  refresh_wanted_ = true;
  eventfd_write(wake_fd_, 1);
  passed_.wait_for(lock, limit, [&] { return pass_completed_ >= wanted; });
  return view_;
}

GpuProbe::Events GpuProbe::Loop::take_events() {
  const std::lock_guard lock(mutex_);
  Events out{{events_.begin(), events_.end()}, events_dropped_};
  events_.clear();
  events_dropped_ = 0;
  return out;
}

GpuProbe::Counters GpuProbe::Loop::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace bmgpu::agent
