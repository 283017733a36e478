// Job logs between nodes, disk and followers, on a thread of its own, so that a slow disk or a slow
// reader never holds the market up.
//
// A node is told that its lines are safe only after they are durable; one fdatasync serves all that
// came in the meantime. A follower gets what is on disk as fast as it takes it and never more than
// 1 MiB ahead.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "api/server.h"
#include "controld/clock.h"
#include "controld/log_store.h"
#include "wire/encoding.h"
#include "wire/log.h"

namespace bmgpu::controld {

class Metrics;

struct FollowRequest {
  LogKey key;
  std::uint64_t from_sequence = 1;
  std::uint32_t tail = 0;  // > 0: only so many of the last lines
  bool follow = false;
  wire::Encoding encoding = wire::Encoding::Proto;
  std::shared_ptr<api::Stream> stream;
};

// Thread-safe.
class LogService {
 public:
  using Acknowledge = std::function<void(const LogStore::Taken& taken)>;

  LogService(std::unique_ptr<LogStore> store, Metrics& metrics, wire::Log& log);
  ~LogService();  // finishes what is queued, ends all streams

  // `acknowledge` is called on the service's thread when the lines are durable. Lines of an attempt
  // that is not `node`'s are dropped unacknowledged.
  void append(NodeId node, v1::LogAppend lines, Acknowledge acknowledge);

  // The attempt is `node`'s, from now until its lease ended; logs of earlier ones say it
  // themselves.
  void expect(const LogKey& key, NodeId node);

  // The lease is over: followers get what comes within a few seconds, then their streams end.
  void ended(const LogKey& key);

  void follow(FollowRequest request);

 private:
  struct Follower {
    FollowRequest request;
    std::uint64_t next = 1;
  };
  struct Append;
  struct Queued;

  void run();
  void keep_owner(const LogKey& key);
  // `created`: files were made that have to be durable too.
  void write(std::vector<Append>& appends, bool created);
  bool pump(Follower& follower, BootTime now);  // false: it is done
  bool finish_if_over(Follower& follower, BootTime now);

  std::unique_ptr<LogStore> store_;
  Metrics& metrics_;
  wire::Log& log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<Queued> queued_;
  // Of the thread alone.
  std::map<LogKey, NodeId> expected_;
  std::map<LogKey, BootTime> ended_;
  std::list<Follower> followers_;
  std::thread thread_;
};

}  // namespace bmgpu::controld
