// The parent's end of a worker process: start, ask with a deadline, kill without ever waiting long.
//
// Not thread-safe. The child dies with the thread that started it (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/gpu/worker_wire.h"

namespace bmgpu::agent {

// A process that was killed and may not be gone yet (a driver call can hold it in the kernel).
class CondemnedProcess {
 public:
  explicit CondemnedProcess(pid_t pid) : pid_(pid) {}
  // Reaps it if it is gone; waits at most `limit_ms` for that.
  bool gone(int limit_ms);

 private:
  pid_t pid_;
};

class WorkerProcess {
 public:
  // `command` is an argument vector; "--fd=3" and "--library=…" are appended. `sim_profile` goes
  // into the child's environment. Unavailable: no process could be made.
  static Result<std::unique_ptr<WorkerProcess>> start(std::vector<std::string> command,
                                                      const std::string& library,
                                                      const std::string& sim_profile);
  ~WorkerProcess();  // closes the socket; call kill() before
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  enum class Outcome { Answered, Late, Died, Interrupted };
  struct Answer {
    Outcome outcome = Outcome::Died;
    WorkerFrame frame;
  };
  // Sends `request` and waits for its answer until CLOCK_BOOTTIME `deadline_ms`, or up to five
  // times as long while the worker waits for a processor: a busy host is not a hung driver. Events
  // that arrive meanwhile go to `on_event`. Whenever the eventfd `wake_fd` is written it is
  // drained, and the wait ends (Interrupted) if `stopping()` says so.
  Answer ask(WorkerRequest request, std::int64_t deadline_ms, int wake_fd,
             const std::function<bool()>& stopping,
             const std::function<void(const WorkerFrame&)>& on_event);

  // Reads one event if there is one. False: the worker is gone.
  bool take_event(std::optional<WorkerFrame>& event);

  int fd() const { return fd_; }

  // SIGKILL. The process may take its time; see CondemnedProcess.
  CondemnedProcess kill();

 private:
  WorkerProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  pid_t pid_;
  int fd_;
  std::uint64_t serial_ = 0;
};

}  // namespace bmgpu::agent
