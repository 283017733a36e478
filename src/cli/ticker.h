// Waits between two looks at the market, until Ctrl-C.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cli/environment.h"

namespace bmgpu::cli {

// Takes Ctrl-C for itself while it lives.
class Ticker {
 public:
  explicit Ticker(Interrupts& interrupts);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // False at once when Ctrl-C has been pressed.
  bool wait(std::chrono::milliseconds time);

 private:
  Interrupts& interrupts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
};

}  // namespace bmgpu::cli
