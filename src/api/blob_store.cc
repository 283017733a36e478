#include "api/blob_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "wire/hash.h"

namespace bmgpu::api {
namespace {

Error file_error(std::string_view action) {
  const int number = errno;
  const bool full = number == ENOSPC || number == EDQUOT;
  return Error{full ? ErrorCode::ResourceExhausted : ErrorCode::Unavailable,
               "the server cannot " + std::string(action) + " the file: " + std::strerror(number)};
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return file_error("write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> sync_directory(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return file_error("keep");
  }
  const Result<void> synced = ::fsync(fd) == 0 ? Result<void>() : file_error("keep");
  ::close(fd);
  return synced;
}

}  // namespace

bool is_blob_name(std::string_view name) {
  return name.size() == 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// A file that is being written under a temporary name, or read.
class BlobStore::OpenFile {
 public:
  explicit OpenFile(BlobQuota* quota = nullptr) : quota_(quota) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    if (!temporary_.empty()) {
      ::unlink(temporary_.c_str());
    }
    if (is_counted_) {
      quota_->drop(account_, bytes_);
    }
  }

  Result<void> create(const std::string& directory, std::string name, AccountId account) {
    directory_ = directory;
    name_ = std::move(name);
    account_ = account;
    if (quota_ != nullptr) {
      if (Result<void> begun = quota_->begin(account_); !begun.ok()) {
        return begun;
      }
      is_counted_ = true;
    }
    const std::string path = directory + "/tmp/" + name_ + "." + wire::hex(wire::random_bytes(8));
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) {
      return file_error("create");
    }
    temporary_ = path;
    return {};
  }

  Result<void> write(std::string_view bytes) {
    if (quota_ != nullptr) {
      if (Result<void> grown = quota_->grow(account_, bytes.size()); !grown.ok()) {
        return grown;
      }
      bytes_ += bytes.size();
    }
    hash_.add(bytes);
    return write_all(fd_, bytes);
  }

  Result<void> finish() {
    const std::string found = wire::hex(hash_.finish());
    if (found != name_) {
      return Error{ErrorCode::InvalidArgument,
                   "the content's SHA-256 is " + found + ", not " + name_ +
                       "; nothing was kept. Did the file change while it was sent?"};
    }
    if (::fsync(fd_) != 0) {
      return file_error("keep");
    }
    const Result<void> kept = quota_ == nullptr ? rename_to_name()
                                                : quota_->keep(account_, name_, bytes_,
                                                               [this] { return rename_to_name(); });
    if (!kept.ok()) {
      return kept;
    }
    is_counted_ = false;  // by us: it is the account's now
    return sync_directory(directory_);
  }

  Result<std::uint64_t> open(const std::string& path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd_ < 0 && errno == ENOENT) {
      return Error{ErrorCode::NotFound, "there is no file of this hash"};
    }
    struct stat facts {};
    if (fd_ < 0 || ::fstat(fd_, &facts) != 0) {
      return file_error("open");
    }
    return static_cast<std::uint64_t>(facts.st_size);
  }

  Result<std::string> read(std::size_t bytes_max) {
    std::string bytes(bytes_max, '\0');
    ssize_t count = 0;
    do {
      count = ::read(fd_, bytes.data(), bytes.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      return file_error("read");
    }
    bytes.resize(static_cast<std::size_t>(count));
    return bytes;
  }

 private:
  Result<void> rename_to_name() {
    if (::rename(temporary_.c_str(), (directory_ + "/" + name_).c_str()) != 0) {
      return file_error("keep");
    }
    temporary_.clear();
    return {};
  }

  BlobQuota* const quota_;
  AccountId account_;
  std::uint64_t bytes_ = 0;
  bool is_counted_ = false;  // with the quota, as one that is being received
  int fd_ = -1;
  std::string directory_;
  std::string name_;
  std::string temporary_;  // removed unless finish() gave it its name
  wire::Sha256 hash_;
};

BlobStore::BlobStore(Server::Blobs blobs) : blobs_(std::move(blobs)) {
  // What an earlier run left half-written. Failure shows at the first write.
  std::error_code ignored;
  std::filesystem::remove_all(blobs_.directory + "/tmp", ignored);
  std::filesystem::create_directories(blobs_.directory + "/tmp", ignored);
  thread_ = std::thread([this] { work(); });
}

BlobStore::~BlobStore() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BlobStore::run(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void BlobStore::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) {
      return;
    }
    const std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

void BlobStore::answer(const HandleTarget& target, Result<std::string> bytes,
                       std::uint64_t number) {
  Delivery delivery{Delivery::Kind::File, target.connection, target.exchange, {}, {}, number};
  if (bytes.ok()) {
    delivery.bytes = std::move(bytes).value();
  } else {
    delivery.error = bytes.error();
    open_.erase(target.connection);
  }
  target.outbox->push(std::move(delivery));
}

BlobStore::OpenFile* BlobStore::find(const HandleTarget& target) {
  const auto found = open_.find(target.connection);
  check(found != open_.end(), "blob store: no file is open for this connection");
  return found->second.get();
}

void BlobStore::begin_write(HandleTarget target, std::string name, AccountId account) {
  run([this, target = std::move(target), name = std::move(name), account] {
    auto file = std::make_unique<OpenFile>(blobs_.quota);
    const Result<void> created = file->create(blobs_.directory, name, account);
    open_[target.connection] = std::move(file);
    answer(target, created.ok() ? Result<std::string>(std::string()) : created.error());
  });
}

void BlobStore::write(HandleTarget target, std::string bytes) {
  run([this, target = std::move(target), bytes = std::move(bytes)] {
    const Result<void> written = find(target)->write(bytes);
    answer(target, written.ok() ? Result<std::string>(std::string()) : written.error());
  });
}

void BlobStore::finish_write(HandleTarget target) {
  run([this, target = std::move(target)] {
    const Result<void> kept = find(target)->finish();
    open_.erase(target.connection);
    answer(target, kept.ok() ? Result<std::string>(std::string()) : kept.error());
  });
}

void BlobStore::abandon(HandleTarget target) {
  run([this, target = std::move(target)] { open_.erase(target.connection); });
}

void BlobStore::begin_read(HandleTarget target, std::string name) {
  run([this, target = std::move(target), name = std::move(name)] {
    auto file = std::make_unique<OpenFile>();
    const Result<std::uint64_t> size = file->open(blobs_.directory + "/" + name);
    open_[target.connection] = std::move(file);
    answer(target, size.ok() ? Result<std::string>(std::string()) : size.error(),
           size.ok() ? *size : 0);
  });
}

void BlobStore::read(HandleTarget target, std::size_t bytes_max) {
  run([this, target = std::move(target), bytes_max] {
    answer(target, find(target)->read(bytes_max));
  });
}

}  // namespace bmgpu::api
