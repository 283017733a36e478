// Files of jobs' working directories, by the SHA-256 of their content: <state_dir>/blobs/<hex>.
//
// A file that is there is whole and right: it was checked before it got its name. Fetched from
// bmd's /blobs/<hex>, four at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/worker_pool.h"
#include "base/result.h"
#include "wire/client.h"

namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

class EventLoop;

// Lives on the loop's thread; only the fetching runs elsewhere.
class BlobCache {
 public:
  using Done = std::function<void(const Result<void>&)>;
  using Progress = std::function<void(std::size_t left)>;
  static constexpr std::size_t kFetchesAtOnce = 4;  // documented limit

  BlobCache(EventLoop& loop, wire::Log& log, std::string folder, wire::Endpoint endpoint,
            std::int64_t bytes_max);
  ~BlobCache();

  // Those of `hashes` (lower-case hex) that are not there, each once.
  std::vector<std::string> missing(const std::vector<std::string>& hashes) const;

  // Fetches them and calls `done` once: ok when all are there, else the first failure (Unavailable:
  // try again; anything else will not get better). `progress` is called as files arrive.
  void fetch(const std::vector<std::string>& hashes, Progress progress, Done done);

  // Removes the files used least recently while all together are over the limit; those of the last
  // ten minutes stay.
  void evict();

 private:
  struct Request;
  Result<void> fetch_one(const std::string& hash);
  std::unique_ptr<wire::Client> take_client(Error& why);

  EventLoop& loop_;
  wire::Log& log_;
  const std::string folder_;
  const wire::Endpoint endpoint_;
  const std::int64_t bytes_max_;
  std::map<std::string, std::vector<std::shared_ptr<Request>>> wanted_;  // by hash, being fetched

  std::mutex mutex_;                                 // guards idle_
  std::vector<std::unique_ptr<wire::Client>> idle_;  // connections kept between fetches
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace bmgpu::agent
