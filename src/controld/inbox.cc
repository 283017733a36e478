#include "controld/inbox.h"

#include <algorithm>
#include <iterator>

namespace bmgpu::controld {

void Inbox::push(std::unique_lock<std::mutex> lock, Work work) {
  queue_.push_back(std::move(work));
  const bool wake = wake_at_ != 0 && queue_.size() >= wake_at_;
  lock.unlock();
  if (wake) {
    wake_.notify_one();
  }
}

bool Inbox::post(Work work) {
  std::unique_lock lock(mutex_);
  if (queue_.size() >= queued_max_) {
    return false;
  }
  push(std::move(lock), std::move(work));
  return true;
}

void Inbox::post_always(Work work) { push(std::unique_lock(mutex_), std::move(work)); }

void Inbox::take(std::vector<Work>& batch, std::size_t batch_max, std::chrono::nanoseconds timeout,
                 std::size_t wanted, std::chrono::nanoseconds linger) {
  std::unique_lock lock(mutex_);
  const auto wait = [&](std::size_t size, std::chrono::nanoseconds most) {
    wake_at_ = size;
    wake_.wait_for(lock, most, [&] { return closed_ || queue_.size() >= size; });
    wake_at_ = 0;
  };
  if (queue_.empty()) {
    wait(1, timeout);
  }
  if (!queue_.empty() && queue_.size() < wanted) {
    wait(wanted, linger);
  }
  if (queue_.size() <= batch_max) {
    batch.swap(queue_);
    return;
  }
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(batch_max);
  batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
}

void Inbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_one();
}

bool Inbox::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::size_t Inbox::size() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

}  // namespace bmgpu::controld
