// Feeds history from the market loop, on a thread of its own and with lower priority: reports never
// slow orders down. What does not fit into the queue is read from the journal later.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "controld/turn.h"
#include "store/history.h"
#include "store/journal.h"
#include "wire/log.h"

namespace bmgpu::controld {

class Projection {
 public:
  static constexpr std::size_t kQueuedEventsMax = 200'000;

  // `history` has been caught up with the journal up to `last`.
  Projection(std::unique_ptr<store::HistoryWriter> history, Sequence last, wire::Log& log);
  ~Projection();  // applies what is queued and makes it durable

  // Loop thread, after each commit: the events of `turn` end at `last`.
  void feed(const Turn& turn, Sequence last);
  // Loop thread, now and then: hands on what the queue had no place for.
  void refill(store::Journal& journal);

  // Loop thread: events that history does not show yet.
  std::uint64_t lag() const { return last_.value() - applied().value(); }

  // What readers of history see, and what the journal may be cut to.
  Sequence applied() const { return Sequence(applied_.load(std::memory_order_acquire)); }
  Sequence durable() const { return Sequence(durable_.load(std::memory_order_acquire)); }

 private:
  void run();
  void enqueue(std::vector<store::Recorded> events);

  const std::unique_ptr<store::HistoryWriter> history_;
  wire::Log& log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<store::Recorded> queue_;
  bool stopping_ = false;
  std::atomic<std::uint64_t> applied_;
  std::atomic<std::uint64_t> durable_;
  std::atomic<std::size_t> held_{0};  // events queued or being applied
  Sequence fed_;                      // loop thread: the last event that was queued
  Sequence last_;                     // loop thread: the last event there is
  std::thread thread_;
};

}  // namespace bmgpu::controld
