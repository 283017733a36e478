// Threads for work that may block: downloads, podman, removing folders.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bmgpu::agent {

// Thread-safe. Tasks start in the order of submission.
class WorkerPool {
 public:
  using Task = std::function<void()>;
  explicit WorkerPool(std::size_t threads);
  ~WorkerPool();  // finishes what runs, drops what waits
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void submit(Task task);

 private:
  void work();

  std::mutex mutex_;  // guards tasks_ and stopping_
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bmgpu::agent
