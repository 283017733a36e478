#include "controld/blob_sweeper.h"

#include <chrono>

#include "controld/clock.h"
#include "controld/thread_name.h"

namespace bmgpu::controld {
namespace {

constexpr std::chrono::hours kEvery{1};

}  // namespace

BlobSweeper::BlobSweeper(BlobLedger& ledger, Live live, wire::Log& log)
    : ledger_(ledger), live_(std::move(live)), log_(log), thread_([this] { run(); }) {}

BlobSweeper::~BlobSweeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BlobSweeper::run() {
  name_thread("bmd-blobs");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const std::optional<std::vector<LiveBlob>> live = live_();
    const std::size_t removed = live ? ledger_.sweep(*live, wall_now()) : 0;
    if (removed > 0) {
      log_.info("removed uploaded files that no order needs", {{"files", removed}});
    }
    lock.lock();
    wake_.wait_for(lock, kEvery, [this] { return stopping_; });
  }
}

}  // namespace bmgpu::controld
