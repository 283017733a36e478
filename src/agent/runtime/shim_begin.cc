#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "agent/host/facts.h"
#include "agent/runtime/clock.h"
#include "agent/runtime/service.h"
#include "agent/runtime/shim_job.h"
#include "agent/runtime/shim_loop.h"
#include "agent/runtime/shim_status.h"

namespace bmgpu::agent {
namespace {

using agent_core::EndCause;
using agent_core::ShimAction;
using agent_core::ShimEvent;
using agent_core::ShimPhase;

constexpr int kNotReleased = 125;  // bm-init: "go" never came

}  // namespace

std::string Shim::command_name() const {
  return order_.spec().job().command().empty() ? "the image's command"
                                               : order_.spec().job().command(0);
}

void Shim::begin() {
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  check(wake_.valid(), "shim: eventfd");
  check(timer_.valid(), "shim: timerfd");
  // Without a watch (their number is limited) the want is looked at every second.
  notify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ::inotify_add_watch(notify_.get(), dir_.path().c_str(), IN_MOVED_TO);
  for (const v1::ShimOrder::Device& device : order_.devices()) {
    state_.leased_minors.push_back(device.minor());
  }
  std::sort(state_.leased_minors.begin(), state_.leased_minors.end());
  if (order_.stop_grace_ms() > 0) {
    state_.grace_ns = std::int64_t{order_.stop_grace_ms()} * 1'000'000;
  }
  if (Result<v1::AttemptStatus> old = dir_.read_status(); old.ok()) {
    status_ = *old;
  }
  status_.set_lease(order_.spec().lease());
  status_.set_rank(order_.spec().rank());
  status_.set_attempt(order_.spec().attempt());
  status_.set_incarnation(order_.spec().incarnation());
  Result<v1::ShimMemory> memory = dir_.read_memory();
  if (order_.boot_id() != read_boot_id()) {
    apply(agent_core::ShimFailed{EndCause::NodeRestarted, "the node restarted"});
  } else if (memory.ok() && memory->boot_id() == order_.boot_id()) {
    memory_ = *memory;
    adopt();
  } else {
    memory_.set_boot_id(order_.boot_id());
    begin_anew();
  }
}

void Shim::adopt() {
  if (status_.phase() == v1::ATTEMPT_PHASE_ENDING) {
    if (status_.has_exit_code()) {
      state_.exit_code = status_.exit_code();
    }
    read_want();
    apply(agent_core::ShimFailed{end_cause(status_.end_reason()), status_.detail()});
    return;
  }
  (void)ensure_service(order_.runtime(), std::chrono::seconds(15)).ok();
  const Podman podman(service_socket(order_.runtime()));
  const Result<ContainerState> container = podman.inspect(container_name(
      order_.market(), {order_.spec().lease(), order_.spec().rank(), order_.spec().attempt()}));
  if (container.ok() && memory_.releasing() && adopt_container(*container)) {
    return;
  }
  if (!container.ok() && container.error().code != ErrorCode::NotFound) {
    say("adopt: " + container.error().message);
  }
  if (memory_.released()) {
    read_want();
    apply(agent_core::ShimAdopted{});
    apply(agent_core::ShimJobEnded{std::nullopt, 0, "its container was gone"});
    return;
  }
  say_failure("adopt: clearing what was half made", remove_job(order_, dir_));
  memory_.set_releasing(false);
  begin_anew();
}

bool Shim::adopt_container(const ContainerState& container) {
  if (!container.running && !memory_.released() && container.exit_code == kNotReleased) {
    return false;
  }
  memory_.set_released(true);
  say_failure("memory", dir_.write_memory(memory_));
  if (container.running) {
    take(container);
  }
  read_want();
  apply(agent_core::ShimAdopted{});
  if (!container.running) {
    apply(agent_core::ShimJobEnded{container.exit_code, container.oom_killed ? 1u : 0u, ""});
  }
  return true;
}

void Shim::begin_anew() {
  status_.set_progress("scratch");
  read_want();
  if (state_.phase != ShimPhase::Preparing) {
    return;  // over before it began
  }
  report();
  Result<Gate> gate = Gate::listen(dir_.file("gate"));
  if (!gate.ok()) {
    apply(agent_core::ShimFailed{EndCause::StartFailed, gate.error().message});
    return;
  }
  gate_ = std::move(*gate);
  say_failure("deadline", write_gate_deadline(dir_.file("gate"), memory_.lease_end_boottime_ns(),
                                              memory_.lease_end_unix_ms()));
  worker_ = std::thread([this] {
    auto outcome = start_job(order_, dir_, cancel_, [this](const std::string& p) { post(p); });
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    ::eventfd_write(wake_.get(), 1);
  });
}

void Shim::post(std::string progress) {
  const std::lock_guard lock(mutex_);
  progress_.push_back(std::move(progress));
  ::eventfd_write(wake_.get(), 1);
}

void Shim::take(const ContainerState& container) {
  pid_fd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, container.pid, 0)));
  if (container.cgroup_path.size() > 1) {
    cgroup_.emplace(cgroup_trees(), container.cgroup_path);
  }
}

}  // namespace bmgpu::agent
