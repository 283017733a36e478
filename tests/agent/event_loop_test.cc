#include "agent/event_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

TEST(EventLoopTest, RunsPostedTasksInOrderFromAnyThread) {
  const std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) {
      loop->post([&seen, i] { seen.push_back(i); });
    }
    loop->post([&] { loop->stop(); });
  });
  loop->run();
  poster.join();
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(EventLoopTest, TimersRunByDueTimeAndCanBeCancelled) {
  const std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::string order;
  loop->after(milliseconds(4), [&] { order += 'c'; });
  const EventLoop::TimerId cancelled = loop->after(milliseconds(3), [&] { order += 'x'; });
  loop->after(milliseconds(1), [&] {
    order += 'a';
    loop->cancel(cancelled);
  });
  loop->after(milliseconds(2), [&] { order += 'b'; });
  loop->after(milliseconds(5), [&] { loop->stop(); });
  loop->run();
  EXPECT_EQ(order, "abc");
}

TEST(EventLoopTest, PeriodicTimersRepeatUntilCancelled) {
  const std::unique_ptr<EventLoop> loop = *EventLoop::create();
  int runs = 0;
  EventLoop::TimerId id = 0;
  id = loop->every(milliseconds(1), [&] {
    if (++runs == 3) {
      loop->cancel(id);
      loop->after(milliseconds(5), [&] { loop->stop(); });
    }
  });
  loop->run();
  EXPECT_EQ(runs, 3);
}

TEST(EventLoopTest, WatchesFilesAndSignals) {
  const std::unique_ptr<EventLoop> loop = *EventLoop::create();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::string read_text;
  ASSERT_TRUE(loop->watch(ends[0],
                          [&] {
                            char byte = 0;
                            ASSERT_EQ(read(ends[0], &byte, 1), 1);
                            read_text += byte;
                            loop->unwatch(ends[0]);
                            kill(getpid(), SIGUSR1);
                          })
                  .ok());
  const Result<Fd> signals = watch_signals(*loop, {SIGUSR1}, [&] { loop->stop(); });
  ASSERT_TRUE(signals.ok());
  ASSERT_EQ(write(ends[1], "ab", 2), 2);
  loop->run();
  EXPECT_EQ(read_text, "a");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace bmgpu::agent
