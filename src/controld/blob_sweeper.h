// Sweeps the uploaded files every hour, and once at the start.
//
// A thread of its own: listing a large folder is slow.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "controld/blob_ledger.h"
#include "wire/log.h"

namespace bmgpu::controld {

class BlobSweeper {
 public:
  // What live orders need; nothing if that cannot be said now: then nothing is removed. Called on
  // the sweeper's thread; may wait.
  using Live = std::function<std::optional<std::vector<LiveBlob>>()>;

  BlobSweeper(BlobLedger& ledger, Live live, wire::Log& log);
  ~BlobSweeper();
  BlobSweeper(const BlobSweeper&) = delete;
  BlobSweeper& operator=(const BlobSweeper&) = delete;

 private:
  void run();

  BlobLedger& ledger_;
  const Live live_;
  wire::Log& log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace bmgpu::controld
