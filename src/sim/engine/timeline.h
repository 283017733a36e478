// Virtual time. Actions run one after the other, by (time, order of scheduling), so a run is the
// same on every machine. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.h"

namespace bmgpu::sim {

class Timeline {
 public:
  using Action = std::function<void()>;

  explicit Timeline(Instant start) : now_(start) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  Instant now() const { return now_; }
  std::uint64_t actions_run() const { return actions_run_; }

  // A time that has passed means now.
  void at(Instant when, Action action);
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }

  // Runs the next action that is due before `until`. False: there is none, and now() is `until`.
  bool step(Instant until);

 private:
  struct Entry {
    Instant at;
    std::uint64_t number = 0;
    Action action;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.number > b.number;
  }

  Instant now_;
  std::uint64_t next_number_ = 0;
  std::uint64_t actions_run_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace bmgpu::sim
