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
#include <charconv>
#include <cstring>
#include <sstream>
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

constexpr std::chrono::seconds kServiceDeadline{15};
constexpr int kAskAgainMs = 100;
constexpr int kLeaveWaitMs = 1000;
constexpr std::int64_t kNotedWaitNs = 15'000'000'000;
constexpr int kNotReleased = 125;  // bm-init: "go" never came

// Field 22 of /proc/<pid>/stat; 0 if there is no such process.
std::uint64_t process_start(int pid) {
  const Result<std::string> text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.ok() ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) {
    return 0;
  }
  std::istringstream fields(text->substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    fields >> field;
  }
  std::uint64_t start = 0;
  std::from_chars(field.data(), field.data() + field.size(), start);
  return start;
}

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

// Another shim was here before. What it got to decides.
void Shim::adopt() {
  if (status_.phase() == v1::ATTEMPT_PHASE_ENDING) {
    if (status_.has_exit_code()) {
      state_.exit_code = status_.exit_code();
    }
    take_memory();
    apply(agent_core::ShimFailed{end_cause(status_.end_reason()), status_.detail()});
    return;
  }
  if (memory_.releasing() && take_memory() && runs_on()) {
    memory_.set_released(true);
    say_failure("memory", dir_.write_memory(memory_));
    apply(agent_core::ShimAdopted{*read_want()});
    return;
  }
  const Result<ContainerState> container = ask_about_container();
  if (container.ok() && memory_.releasing() && container->ended() &&
      (memory_.released() || container->exit_code != kNotReleased)) {
    adopt_ended(*container);
    return;
  }
  if (memory_.released()) {
    apply(agent_core::ShimAdopted{*read_want()});
    apply(agent_core::ShimJobEnded{std::nullopt, 0, "its container was gone"});
    return;
  }
  say_failure("adopt: clearing what was half made", remove_job(order_, dir_));
  memory_ = v1::ShimMemory();
  memory_.set_boot_id(order_.boot_id());
  begin_anew();
}

// The process that the last shim saw, if it lives: found without asking the engine.
bool Shim::take_memory() {
  if (memory_.cgroup().size() > 1) {
    cgroup_.emplace(cgroup_trees(), memory_.cgroup());
  }
  if (memory_.pid() <= 0) {
    return false;
  }
  pid_fd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, memory_.pid(), 0)));
  if (!pid_fd_.valid() || process_start(memory_.pid()) != memory_.pid_start()) {
    pid_fd_.reset();
  }
  return pid_fd_.valid();
}

// False: it ended meanwhile. A process 1 that "go" did not reach leaves at once, because nobody
// holds the gate any more; one that it did reach runs on.
bool Shim::runs_on() {
  if (memory_.released()) {
    return true;
  }
  pollfd gone = {pid_fd_.get(), POLLIN, 0};
  if (::poll(&gone, 1, kLeaveWaitMs) == 0) {
    return true;
  }
  pid_fd_.reset();
  return false;
}

// Until the engine answers: not knowing how a job ended, nothing may be begun anew.
Result<ContainerState> Shim::ask_about_container() {
  const std::int64_t noted_by = boot_now_ns() + kNotedWaitNs;
  while (true) {
    const Result<void> service = ensure_service(order_.runtime(), kServiceDeadline);
    Result<ContainerState> container =
        service.ok() ? Podman(service_socket(order_.runtime())).inspect(container_of(order_))
                     : Result<ContainerState>(service.error());
    const bool settled = !container.ok() || container->ended() || !memory_.releasing();
    if (container.ok() && (settled || boot_now_ns() > noted_by)) {
      return container;
    }
    if (!container.ok() && container.error().code == ErrorCode::NotFound) {
      return container;
    }
    if (!container.ok()) {
      say("adopt: " + container.error().message);
    }
    ::poll(nullptr, 0, kAskAgainMs);
  }
}

// It ended while no shim looked: judged by the time at which it did.
void Shim::adopt_ended(const ContainerState& container) {
  memory_.set_released(true);
  say_failure("memory", dir_.write_memory(memory_));
  const std::int64_t ago_ms =
      container.finished_unix_ms <= 0
          ? 0
          : std::max<std::int64_t>(0, unix_ms() - container.finished_unix_ms);
  const std::int64_t then_ns = boot_now_ns() - ago_ms * 1'000'000;
  status_.set_ended_unix_ms(unix_ms() - ago_ms);
  apply(agent_core::ShimAdopted{*read_want()}, then_ns);
  apply(agent_core::ShimJobEnded{container.exit_code, container.oom_killed ? 1u : 0u, ""}, then_ns);
}

void Shim::begin_anew() {
  status_.set_progress("scratch");
  take_want();
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
    auto outcome = start_job(
        order_, dir_, shared_, [this](const std::string& p) { post(p); }, timeline_);
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

// Process 1 of the container has come to the gate.
void Shim::take(int pid) {
  memory_.set_pid(pid);
  memory_.set_pid_start(process_start(pid));
  memory_.set_cgroup(cgroup_of(pid, cgroup_trees()));
  say_failure("memory", dir_.write_memory(memory_));
  if (!take_memory()) {
    say("process " + std::to_string(pid) + " left the gate at once");
  }
}

}  // namespace bmgpu::agent
