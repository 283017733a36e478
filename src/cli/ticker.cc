#include "cli/ticker.h"

namespace bmgpu::cli {

Ticker::Ticker(Interrupts& interrupts) : interrupts_(interrupts) {
  interrupts_.on_interrupt([this] {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  });
}

Ticker::~Ticker() { interrupts_.on_interrupt({}); }

bool Ticker::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return interrupted_; });
}

}  // namespace bmgpu::cli
