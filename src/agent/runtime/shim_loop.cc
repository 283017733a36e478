#include "agent/runtime/shim_loop.h"

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
#include "agent/runtime/shim_status.h"

namespace bmgpu::agent {
namespace {

using agent_core::EndCause;
using agent_core::ShimAction;
using agent_core::ShimEvent;
using agent_core::ShimPhase;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kHousekeepingNs = kSecondNs;
constexpr std::int64_t kDeviceReportNs = 60 * kSecondNs;  // a cold driver takes seconds per GPU
constexpr off_t kLogBytesMax = off_t{1} << 30;
constexpr std::chrono::seconds kKillDeadline{10};
constexpr std::chrono::seconds kFreezeDeadline{2};
constexpr std::chrono::seconds kExitCodeDeadline{10};
constexpr std::chrono::seconds kRemovalWait{5};
constexpr int kByeWaitMs = 300;
constexpr int kNotReleased = 125;  // bm-init: "go" never came

}  // namespace

Shim::~Shim() {
  shared_.cancel = true;
  if (worker_.joinable()) {
    worker_.join();
  }
}

void Shim::on_worker() {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  std::deque<std::string> progress;
  decltype(outcome_) outcome;
  {
    const std::lock_guard lock(mutex_);
    progress.swap(progress_);
    outcome.swap(outcome_);
  }
  if (!progress.empty() && state_.phase == ShimPhase::Preparing) {
    status_.set_progress(progress.back());
    report();
  }
  if (!outcome) {
    return;
  }
  if (*outcome) {
    // Its last step is the container's start, and an engine that dies just then may have started
    // it: once process 1 has come, it alone tells how things go on.
    if (gate_) {
      on_gate();
    }
    if (!gate_ || gate_->peer_pid() == 0) {
      apply(**outcome);
      return;
    }
    say("the container runs in spite of: " + (*outcome)->detail);
  }
  devices_due_ns_ = boot_now_ns() + kDeviceReportNs;
  if (state_.phase == ShimPhase::Preparing && !state_.devices_ok) {
    status_.set_progress("device check");
    report();
  }
}

void Shim::apply(const ShimEvent& event, std::int64_t at_ns) {
  // What an action leads to follows after all actions of its own event.
  events_.push_back(event);
  while (!events_.empty()) {
    const ShimEvent next = events_.front();
    events_.pop_front();
    for (const ShimAction action : agent_core::step(state_, at_ns, next)) {
      perform(action);
    }
  }
}

void Shim::perform(ShimAction action) {
  switch (action) {
    case ShimAction::Release:
      release();
      break;
    case ShimAction::Terminate:
      ::syscall(SYS_pidfd_send_signal, pid_fd_.get(), SIGTERM, nullptr, 0);
      break;
    case ShimAction::Freeze:
      if (cgroup_) {
        say_failure("freeze", cgroup_->freeze(kFreezeDeadline));
      }
      break;
    case ShimAction::Thaw:
      if (cgroup_) {
        say_failure("thaw", cgroup_->thaw());
      }
      break;
    case ShimAction::Kill:
      kill_all();
      break;
    case ShimAction::Remove:
      remove_all();
      break;
    case ShimAction::Report:
      report();
      break;
  }
}

void Shim::release() {
  // Written before "go": whoever comes after a crash between the two finds process 1 gone with
  // kNotReleased and knows that the job never ran.
  memory_.set_releasing(true);
  if (const Result<void> kept = dir_.write_memory(memory_); !kept.ok()) {
    events_.push_back(agent_core::ShimFailed{
        EndCause::StartFailed,
        order_.node() + " cannot write to its disk: " + kept.error().message});
    return;
  }
  status_.set_running_since_unix_ms(unix_ms());
  status_.clear_progress();
  if (!gate_ || !gate_->go()) {
    events_.push_back(agent_core::ShimFailed{EndCause::StartFailed, "bm-init is gone"});
  }
}

void Shim::kill_all() {
  shared_.cancel = true;
  if (worker_.joinable()) {
    worker_.join();
  }
  if (status_.ended_unix_ms() == 0) {
    status_.set_ended_unix_ms(unix_ms());
    report();
  }
  if (!cgroup_) {
    // The worker may have started a container that nobody took yet; remove_job() kills it.
    events_.push_back(agent_core::ShimAllDead{});
    return;
  }
  while (true) {
    const Result<void> dead = cgroup_->kill(kKillDeadline);
    if (dead.ok()) {
      break;
    }
    say(dead.error().message);  // nothing else may happen before they are dead
  }
  events_.push_back(agent_core::ShimAllDead{});
}

// The end is told when nothing of the job runs: an engine that does not answer delays what is
// removed, not what the market knows. Those few seconds let the last of the log be written.
void Shim::remove_all() {
  removal_ = std::async(std::launch::async, [this] { return remove_job(order_, dir_); });
  if (removal_.wait_for(kRemovalWait) == std::future_status::timeout) {
    say("it has ended; what it leaves is not removed yet, because the container engine is slow");
  }
  events_.push_back(agent_core::ShimRemoved{});
}

void Shim::report() {
  if (state_.phase == ShimPhase::Running && !memory_.released()) {
    return;  // once bm-init says that the command runs
  }
  put_state(state_, status_);
  const Result<void> written = dir_.write_status(status_);
  say_failure("status", written);
  unreported_ = !written.ok();
}

std::optional<agent_core::ShimWanted> Shim::read_want() {
  const Result<std::string> bytes = read_file(dir_.want_path());
  if (!bytes.ok() && bytes.error().code != ErrorCode::NotFound) {
    say(bytes.error().message);
  }
  const std::string now = bytes.ok() ? *bytes : std::string();
  if (state_.wanted && now == want_bytes_) {
    return std::nullopt;
  }
  want_bytes_ = now;
  v1::ShimWant want;
  if (!want.ParseFromString(now)) {
    say("want.pb does not parse; the last one stays");
    if (state_.wanted) {
      return std::nullopt;
    }
    want.Clear();
  }
  const std::int64_t before = memory_.lease_end_boottime_ns();
  agent_core::ShimWanted wanted_now = wanted(order_, want, boot_now_ns(), unix_ms(), memory_);
  if (before != memory_.lease_end_boottime_ns()) {
    say_failure("memory", dir_.write_memory(memory_));
    if (before != 0) {
      say_failure("deadline", write_gate_deadline(dir_.file("gate"), wanted_now.lease_end_ns,
                                                  memory_.lease_end_unix_ms()));
    }
  }
  return wanted_now;
}

void Shim::take_want() {
  if (const std::optional<agent_core::ShimWanted> now = read_want()) {
    apply(*now);
  }
}

void Shim::on_gate() {
  const std::vector<GateMessage> messages = gate_->read();
  if (gate_->peer_pid() != 0 && memory_.pid() == 0) {
    Process1 awaited = Process1::Awaited;
    if (!shared_.process1.compare_exchange_strong(awaited, Process1::Came)) {
      apply(agent_core::ShimFailed{
          EndCause::StartFailed,
          "the container engine of " + order_.node() + " failed while it started the container"});
      return;
    }
    take(gate_->peer_pid());
  }
  for (const GateMessage& message : messages) {
    on_gate_message(message);
  }
}

void Shim::on_gate_message(const GateMessage& message) {
  if (const auto* devices = std::get_if<GateDevices>(&message)) {
    timeline_.mark("devices");
    apply(agent_core::ShimDevices{devices->seen});
  } else if (std::holds_alternative<GateStarted>(message)) {
    timeline_.mark("job");
    memory_.set_released(true);
    say_failure("memory", dir_.write_memory(memory_));
    report();
    say("started, ms: " + timeline_.text());
  } else if (const auto* failed = std::get_if<GateFailed>(&message)) {
    apply(agent_core::ShimFailed{EndCause::StartFailed, "cannot run '" + command_name() +
                                                            "': " + std::strerror(failed->error)});
  } else {
    on_job_message(std::get<GateEnded>(message));
  }
}

void Shim::on_job_message(GateEnded end) {
  const std::uint64_t oom_kills = cgroup_ ? cgroup_->oom_kills() : 0;
  // Process 1 leaves with the job's exit code, so that the engine has it too, should we die now.
  gate_->bye();
  pollfd gone = {pid_fd_.get(), POLLIN, 0};
  if (pid_fd_.valid()) {
    ::poll(&gone, 1, kByeWaitMs);
  }
  pid_fd_.reset();
  status_.set_ended_unix_ms(unix_ms());
  apply(agent_core::ShimJobEnded{end.exit_code, oom_kills, std::move(end.detail)});
}

// Process 1 is gone and said nothing: an adopted job, or one that was killed with it.
void Shim::on_exit() {
  pid_fd_.reset();
  if (gate_) {
    on_gate();  // it may have said it with its last breath
  }
  if (state_.phase > ShimPhase::Terminating || state_.exit_code) {
    return;
  }
  const std::uint64_t oom_kills = cgroup_ ? cgroup_->oom_kills() : 0;
  status_.set_ended_unix_ms(unix_ms());
  const Podman podman(service_socket(order_.runtime()));
  const auto end = std::chrono::steady_clock::now() + kExitCodeDeadline;
  std::optional<int> exit_code;
  bool oom = oom_kills > 0;
  while (std::chrono::steady_clock::now() < end) {
    (void)ensure_service(order_.runtime(), std::chrono::seconds(5)).ok();
    const Result<ContainerState> container = podman.inspect(container_of(order_));
    if (container.ok() && container->ended()) {
      exit_code = container->exit_code;
      oom = oom || container->oom_killed;
      break;
    }
    ::poll(nullptr, 0, 10);
  }
  apply(agent_core::ShimJobEnded{exit_code, oom ? std::max<std::uint64_t>(oom_kills, 1) : 0, ""});
}

void Shim::keep_house() {
  std::array<char, 4096> ignored;
  while (notify_.valid() && ::read(notify_.get(), ignored.data(), ignored.size()) > 0) {
  }
  if (unreported_) {
    report();
  }
  take_want();
  struct stat log = {};
  if (::stat(dir_.log_path().c_str(), &log) == 0 && log.st_size > kLogBytesMax) {
    apply(agent_core::ShimFailed{EndCause::Stopped, "its log reached 1 GiB"});
  }
  if (devices_due_ns_ != 0 && state_.phase == ShimPhase::Preparing && !state_.devices_ok &&
      boot_now_ns() > devices_due_ns_) {
    apply(agent_core::ShimFailed{EndCause::DeviceCheckFailed,
                                 "bm-init did not report the devices within 60 s"});
  }
  apply(agent_core::ShimTick{});
}

void Shim::turn() {
  const std::int64_t house = boot_now_ns() + kHousekeepingNs;
  const std::int64_t at = std::min(house, agent_core::next_tick_ns(state_).value_or(house));
  itimerspec when = {};
  when.it_value.tv_sec = std::max<std::int64_t>(at, 1) / kSecondNs;
  when.it_value.tv_nsec = std::max<std::int64_t>(at, 1) % kSecondNs;
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  std::array<pollfd, 5> fds = {{{wake_.get(), POLLIN, 0},
                                {timer_.get(), POLLIN, 0},
                                {notify_.get(), POLLIN, 0},
                                {gate_ ? gate_->fd() : -1, POLLIN, 0},
                                {pid_fd_.get(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), -1) <= 0) {
    return;
  }
  if (fds[0].revents != 0) {
    on_worker();
  }
  if (fds[3].revents != 0 && gate_) {
    on_gate();
  }
  if (fds[4].revents != 0 && pid_fd_.valid()) {
    on_exit();
  }
  if (fds[1].revents != 0 || fds[2].revents != 0) {
    keep_house();
  }
}

int Shim::run() {
  begin();
  while (state_.phase != ShimPhase::Ended) {
    turn();
  }
  // Nobody else knows how it ended.
  while (unreported_) {
    ::poll(nullptr, 0, kHousekeepingNs / 1'000'000);
    report();
  }
  if (!removal_.valid()) {
    return 0;
  }
  const Result<void> removed = removal_.get();
  say_failure("remove", removed);
  return removed.ok() ? 0 : 1;
}

}  // namespace bmgpu::agent
