#include "agent/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace bmgpu::agent {
namespace {

constexpr int kEventsPerRound = 64;
constexpr int kWaitMsMax = 60'000;

Result<void> add_to_epoll(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    return errno_error("watch a file", errno);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return errno_error("make the event loop", errno);
  }
  if (Result<void> added = add_to_epoll(epoll.get(), wake.get()); !added) {
    return added.error();
  }
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

void EventLoop::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) {
      return;  // the loop has been woken for the first one
    }
  }
  const std::uint64_t one = 1;
  const ssize_t written = write(wake_.get(), &one, sizeof one);
  check(written == sizeof one, "event loop: the eventfd refuses a wake-up");
}

Result<void> EventLoop::watch(int fd, Task readable) {
  if (Result<void> added = add_to_epoll(epoll_.get(), fd); !added) {
    return added;
  }
  watched_[fd] = std::move(readable);
  return {};
}

void EventLoop::unwatch(int fd) {
  if (watched_.erase(fd) > 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
}

EventLoop::TimerId EventLoop::add_timer(Timer timer) {
  const TimerId id = next_timer_++;
  timers_.emplace(id, std::move(timer));
  return id;
}

EventLoop::TimerId EventLoop::after(std::chrono::milliseconds delay, Task task) {
  return add_timer({Clock::now() + delay, std::chrono::milliseconds(0), std::move(task)});
}

EventLoop::TimerId EventLoop::every(std::chrono::milliseconds period, Task task) {
  check(period.count() > 0, "event loop: a period of nothing");
  return add_timer({Clock::now() + period, period, std::move(task)});
}

void EventLoop::cancel(TimerId id) { timers_.erase(id); }

int EventLoop::wait_ms() const {
  if (timers_.empty()) {
    return kWaitMsMax;
  }
  const auto next =
      std::min_element(timers_.begin(), timers_.end(),
                       [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next->second.due - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kWaitMsMax));
}

void EventLoop::run_posted() {
  std::uint64_t count = 0;
  if (read(wake_.get(), &count, sizeof count) < 0) {
    return;  // nobody posted
  }
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(posted_);
  }
  for (const Task& task : tasks) {
    task();
  }
}

void EventLoop::run_due_timers() {
  const Clock::time_point now = Clock::now();
  std::vector<std::pair<Clock::time_point, TimerId>> due;
  for (const auto& [id, timer] : timers_) {
    if (timer.due <= now) {
      due.emplace_back(timer.due, id);
    }
  }
  std::sort(due.begin(), due.end());
  for (const auto& [when, id] : due) {
    const auto at = timers_.find(id);
    if (at == timers_.end()) {
      continue;  // cancelled by one that ran before it
    }
    const Task task = at->second.task;
    if (at->second.period.count() > 0) {
      at->second.due = now + at->second.period;
    } else {
      timers_.erase(at);
    }
    task();
  }
}

void EventLoop::run() {
  std::array<epoll_event, kEventsPerRound> events{};
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(stopping_, false)) {
        return;
      }
    }
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerRound, wait_ms());
    check(count >= 0 || errno == EINTR, "event loop: epoll_wait fails");
    for (int i = 0; i < count; ++i) {
      const auto at = watched_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (at != watched_.end()) {
        const Task task = at->second;  // it may unwatch itself
        task();
      }
    }
    run_posted();
    run_due_timers();
  }
}

void EventLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  post([] {});
}

Result<Fd> watch_signals(EventLoop& loop, std::initializer_list<int> signals,
                         EventLoop::Task task) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return errno_error("block signals", error);
  }
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) {
    return errno_error("watch signals", errno);
  }
  const int raw = fd.get();
  Result<void> watched = loop.watch(raw, [raw, task = std::move(task)] {
    signalfd_siginfo info{};
    while (read(raw, &info, sizeof info) == sizeof info) {
      task();
    }
  });
  return watched ? Result<Fd>(std::move(fd)) : Result<Fd>(watched.error());
}

}  // namespace bmgpu::agent
