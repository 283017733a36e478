// The agent's one loop: files to watch, timers, and work posted by other threads.
//
// Everything that the agent knows is touched on this loop's thread only, so that nothing needs a
// lock; what may block runs elsewhere (worker_pool.h) and posts its result back.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "agent/runtime/files.h"
#include "base/result.h"

namespace bmgpu::agent {

// Only post() and stop() may be called from other threads. Callbacks must not throw.
class EventLoop {
 public:
  using Task = std::function<void()>;

  static Result<std::unique_ptr<EventLoop>> create();

  // Runs `task` on the loop, in the order of posting. After the loop has ended it is dropped.
  void post(Task task);

  // Calls `readable` whenever `fd` can be read. One callback per descriptor.
  Result<void> watch(int fd, Task readable);
  void unwatch(int fd);

  using TimerId = std::uint64_t;
  TimerId after(std::chrono::milliseconds delay, Task task);
  // Again and again; a late one is not made up for.
  TimerId every(std::chrono::milliseconds period, Task task);
  void cancel(TimerId id);  // one that has run or never was: no effect

  // Until stop(), which counts also if it came before. May be called again.
  void run();
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Timer {
    Clock::time_point due;
    std::chrono::milliseconds period{0};  // 0 = once
    Task task;
  };

  EventLoop(Fd epoll, Fd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  TimerId add_timer(Timer timer);
  int wait_ms() const;
  void run_posted();
  void run_due_timers();

  Fd epoll_;
  Fd wake_;  // eventfd: something was posted
  std::map<int, Task> watched_;
  std::map<TimerId, Timer> timers_;
  TimerId next_timer_ = 1;

  std::mutex mutex_;  // guards posted_ and stopping_
  std::vector<Task> posted_;
  bool stopping_ = false;
};

// Blocks the signals in the calling thread (call it before any other thread is made) and runs
// `task` on the loop whenever one arrives. Keep what is returned open.
Result<Fd> watch_signals(EventLoop& loop, std::initializer_list<int> signals, EventLoop::Task task);

}  // namespace bmgpu::agent
