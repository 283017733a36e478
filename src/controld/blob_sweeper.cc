#include "controld/blob_sweeper.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "controld/thread_name.h"

namespace bmgpu::controld {
namespace {

constexpr std::chrono::hours kEvery{1};

}  // namespace

BlobSweeper::BlobSweeper(std::string directory, wire::Log& log)
    : directory_(std::move(directory)), log_(log), thread_([this] { run(); }) {}

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
    const std::size_t removed = sweep_blobs(directory_);
    if (removed > 0) {
      log_.info("removed uploaded files that no order needs", {{"files", removed}});
    }
    lock.lock();
    wake_.wait_for(lock, kEvery, [this] { return stopping_; });
  }
}

bool touch_blob(const std::string& file) {
  return utimensat(AT_FDCWD, file.c_str(), nullptr, 0) == 0;
}

std::size_t sweep_blobs(const std::string& directory) {
  namespace fs = std::filesystem;
  const fs::file_time_type oldest = fs::file_time_type::clock::now() - BlobSweeper::kKept;
  std::size_t removed = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    std::error_code gone;
    const bool old = entry.is_regular_file(gone) && entry.last_write_time(gone) < oldest;
    removed += old && fs::remove(entry.path(), gone) ? 1 : 0;
  }
  return removed;
}

}  // namespace bmgpu::controld
