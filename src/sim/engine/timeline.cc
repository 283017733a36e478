#include "sim/engine/timeline.h"

#include <algorithm>
#include <utility>

namespace bmgpu::sim {

void Timeline::at(Instant when, Action action) {
  heap_.push_back({std::max(when, now_), next_number_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool Timeline::step(Instant until) {
  if (heap_.empty() || heap_.front().at >= until) {
    now_ = std::max(now_, until);
    return false;
  }
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.at;
  ++actions_run_;
  entry.action();
  return true;
}

}  // namespace bmgpu::sim
