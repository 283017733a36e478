// Files named by the SHA-256 of their content, in one directory. A thread of its own does what may
// block, so that a slow disk never delays the edge; answers come back as File deliveries.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "api/handles.h"
#include "api/server.h"

namespace bmgpu::api {

// Its methods are called on the edge thread and return at once. One operation per target at a time.
class BlobStore {
 public:
  explicit BlobStore(Server::Blobs blobs);
  ~BlobStore();  // waits for operations under way

  const Server::Blobs& access() const { return blobs_; }

  // Writing: begin, then pieces, then finish or abandon. Each but abandon answers with one File
  // delivery: an error, or success. finish fails with InvalidArgument if the content is another.
  void begin_write(HandleTarget target, std::string name, AccountId account);
  void write(HandleTarget target, std::string bytes);
  void finish_write(HandleTarget target);
  void abandon(HandleTarget target);  // also ends reading; nothing is answered

  // Reading: begin answers with the size in `number`, each read with the next bytes.
  void begin_read(HandleTarget target, std::string name);
  void read(HandleTarget target, std::size_t bytes_max);

 private:
  class OpenFile;
  void run(std::function<void()> work);
  void work();
  void answer(const HandleTarget& target, Result<std::string> bytes, std::uint64_t number = 0);
  OpenFile* find(const HandleTarget& target);

  const Server::Blobs blobs_;
  std::map<std::uint64_t, std::unique_ptr<OpenFile>> open_;  // by connection; worker thread only
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::thread thread_;
};

// True for 64 lower-case hex digits: safe as a file name.
bool is_blob_name(std::string_view name);

}  // namespace bmgpu::api
