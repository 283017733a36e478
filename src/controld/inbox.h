// Work for the market loop, from any thread. Bounded: what does not fit is refused at once, so that
// a burst costs a clear error and not memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace bmgpu::controld {

class Turn;
using Work = std::function<void(Turn&)>;

class Inbox {
 public:
  explicit Inbox(std::size_t queued_max) : queued_max_(queued_max) {}

  // False: full. The work is dropped unrun.
  bool post(Work work);

  // Work that must not be dropped (what nodes say, end of a session): never refused.
  void post_always(Work work);

  // Waits until there is work, close() was called or `timeout` is over; then up to `linger` more
  // for `wanted` pieces. Takes everything there is, at most `batch_max`, in order.
  void take(std::vector<Work>& batch, std::size_t batch_max, std::chrono::nanoseconds timeout,
            std::size_t wanted, std::chrono::nanoseconds linger);

  void close();  // take() does not wait any more
  bool closed() const;
  std::size_t size() const;

 private:
  void push(std::unique_lock<std::mutex> lock, Work work);

  const std::size_t queued_max_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Work> queue_;
  std::size_t wake_at_ = 0;  // size at which the waiting loop wants to be woken; 0 = nobody waits
  bool closed_ = false;
};

}  // namespace bmgpu::controld
