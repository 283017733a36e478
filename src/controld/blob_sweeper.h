// Removes uploaded files that no order can need any more: those not named by an upload or an order
// for longer than an order can wait and its lease can last.
//
// A thread of its own: listing a large folder is slow.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "wire/log.h"

namespace bmgpu::controld {

class BlobSweeper {
 public:
  // Waiting (a day), a lease with its extensions (30 days), a day in between.
  static constexpr std::chrono::hours kKept{32 * 24};

  BlobSweeper(std::string directory, wire::Log& log);
  ~BlobSweeper();
  BlobSweeper(const BlobSweeper&) = delete;
  BlobSweeper& operator=(const BlobSweeper&) = delete;

 private:
  void run();

  const std::string directory_;
  wire::Log& log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

// Says that a blob is still wanted: it is kept for another kKept. False: it is not there.
bool touch_blob(const std::string& file);

// Removes the files of `directory` that nobody has touched for kKept; how many.
std::size_t sweep_blobs(const std::string& directory);

}  // namespace bmgpu::controld
