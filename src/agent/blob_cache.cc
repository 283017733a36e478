#include "agent/blob_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "agent/event_loop.h"
#include "wire/hash.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = 256 * 1024;
constexpr auto kKeptAtLeast = std::chrono::minutes(10);

Result<std::string> hash_of_file(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return errno_error("open " + path, errno);
  }
  wire::Sha256 hash;
  std::string buffer(kReadBytes, '\0');
  while (true) {
    const ssize_t bytes = read(fd.get(), buffer.data(), buffer.size());
    if (bytes < 0) {
      return errno_error("read " + path, errno);
    }
    if (bytes == 0) {
      return wire::hex(hash.finish());
    }
    hash.add({buffer.data(), static_cast<std::size_t>(bytes)});
  }
}

}  // namespace

// One call of fetch(). Shared by the hashes that it waits for. On the loop's thread only.
struct BlobCache::Request {
  std::size_t left = 0;
  Result<void> outcome;
  Progress progress;
  Done done;
};

BlobCache::BlobCache(EventLoop& loop, wire::Log& log, std::string folder, wire::Endpoint endpoint,
                     std::int64_t bytes_max)
    : loop_(loop),
      log_(log),
      folder_(std::move(folder)),
      endpoint_(std::move(endpoint)),
      bytes_max_(bytes_max),
      workers_(std::make_unique<WorkerPool>(kFetchesAtOnce)) {
  const Result<void> made = make_dirs(folder_ + "/tmp");
  if (!made) {
    log_.error("the folder for jobs' files cannot be made", {{"why", made.error().message}});
  }
  std::error_code unused;  // what a killed agent left half-fetched
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ + "/tmp", unused)) {
    fs::remove(entry.path(), unused);
  }
}

BlobCache::~BlobCache() = default;

std::vector<std::string> BlobCache::missing(const std::vector<std::string>& hashes) const {
  const std::set<std::string> unique(hashes.begin(), hashes.end());
  std::vector<std::string> missing;
  for (const std::string& hash : unique) {
    // Its time is its last use.
    if (utimensat(AT_FDCWD, (folder_ + "/" + hash).c_str(), nullptr, 0) != 0) {
      missing.push_back(hash);
    }
  }
  return missing;
}

void BlobCache::fetch(const std::vector<std::string>& hashes, Progress progress, Done done) {
  const auto request = std::make_shared<Request>();
  request->left = hashes.size();
  request->progress = std::move(progress);
  request->done = std::move(done);
  if (hashes.empty()) {
    loop_.post([request] { request->done({}); });
    return;
  }
  for (const std::string& hash : hashes) {
    std::vector<std::shared_ptr<Request>>& waiting = wanted_[hash];
    waiting.push_back(request);
    if (waiting.size() > 1) {
      continue;
    }
    workers_->submit([this, hash] {
      const Result<void> outcome = fetch_one(hash);
      loop_.post([this, hash, outcome] {
        // Held by name: a temporary would end before the loop that reads from it.
        const auto waiting_for_it = wanted_.extract(hash);
        for (const std::shared_ptr<Request>& waiter : waiting_for_it.mapped()) {
          --waiter->left;
          if (!outcome && waiter->outcome) {
            waiter->outcome = outcome;
          }
          if (waiter->left == 0) {
            waiter->done(waiter->outcome);
          } else {
            waiter->progress(waiter->left);
          }
        }
      });
    });
  }
}

std::unique_ptr<wire::Client> BlobCache::take_client(Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<wire::Client> client = std::move(idle_.back());
      idle_.pop_back();
      return client;
    }
  }
  Result<std::unique_ptr<wire::Client>> client = wire::Client::create(endpoint_);
  if (!client) {
    why = client.error();
    return nullptr;
  }
  return std::move(*client);
}

Result<void> BlobCache::fetch_one(const std::string& hash) {
  Error why;
  std::unique_ptr<wire::Client> client = take_client(why);
  if (client == nullptr) {
    return why;
  }
  const std::string part = folder_ + "/tmp/" + hash;
  Result<void> got = client->get_file("/blobs/" + hash, part);
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(client));
  }
  if (got) {
    const Result<std::string> found = hash_of_file(part);
    if (!found) {
      got = found.error();
    } else if (*found != hash) {
      got = Error{ErrorCode::DataLoss, "a file of the job arrived damaged (" + hash + ")"};
    } else if (rename(part.c_str(), (folder_ + "/" + hash).c_str()) != 0) {
      got = errno_error("rename " + part, errno);
    }
  }
  if (!got) {
    unlink(part.c_str());
  }
  return got;
}

void BlobCache::evict() {
  struct File {
    fs::file_time_type used;
    std::string path;
    std::int64_t bytes;
  };
  std::vector<File> files;
  std::int64_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (entry.is_regular_file(error)) {
      const auto bytes = static_cast<std::int64_t>(entry.file_size(error));
      files.push_back({entry.last_write_time(error), entry.path().string(), bytes});
      total += bytes;
    }
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  const auto now = fs::file_time_type::clock::now();
  for (const File& file : files) {
    if (total <= bytes_max_ || now - file.used < kKeptAtLeast) {
      return;
    }
    if (fs::remove(file.path, error)) {
      total -= file.bytes;
    }
  }
}

}  // namespace bmgpu::agent
