#include "controld/log_service.h"

#include <algorithm>

#include "bmgpu/v1/agent.pb.h"
#include "controld/metrics.h"
#include "controld/thread_name.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::size_t kAheadBytesMax = std::size_t{1} << 20;
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::chrono::milliseconds kSlowReader{20};  // how soon a full one is looked at again
constexpr std::chrono::seconds kIdle{1};
constexpr std::chrono::seconds kGraceAfterEnd{5};
constexpr std::uint32_t kTailMax = 10'000;

}  // namespace

struct LogService::Append {
  NodeId node;
  v1::LogAppend lines;
  Acknowledge acknowledge;
};

struct LogService::Queued {
  std::vector<Append> appends;
  std::vector<std::pair<LogKey, NodeId>> expected;
  std::vector<LogKey> ended;
  std::vector<FollowRequest> follows;
  bool stop = false;

  bool empty() const {
    return appends.empty() && expected.empty() && ended.empty() && follows.empty() && !stop;
  }
};

LogService::LogService(std::unique_ptr<LogStore> store, Metrics& metrics, wire::Log& log)
    : store_(std::move(store)),
      metrics_(metrics),
      log_(log),
      queued_(std::make_unique<Queued>()),
      thread_([this] { run(); }) {}

LogService::~LogService() {
  {
    const std::lock_guard lock(mutex_);
    queued_->stop = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LogService::append(NodeId node, v1::LogAppend lines, Acknowledge acknowledge) {
  {
    const std::lock_guard lock(mutex_);
    queued_->appends.push_back({node, std::move(lines), std::move(acknowledge)});
  }
  wake_.notify_one();
}

void LogService::expect(const LogKey& key, NodeId node) {
  const std::lock_guard lock(mutex_);  // no wake: the next append or follow finds it
  queued_->expected.emplace_back(key, node);
}

void LogService::ended(const LogKey& key) {
  {
    const std::lock_guard lock(mutex_);
    queued_->ended.push_back(key);
  }
  wake_.notify_one();
}

void LogService::follow(FollowRequest request) {
  {
    const std::lock_guard lock(mutex_);
    queued_->follows.push_back(std::move(request));
  }
  wake_.notify_one();
}

void LogService::run() {
  name_thread("bmd-logs");
  bool slow = false;
  for (;;) {
    Queued work;
    {
      std::unique_lock lock(mutex_);
      const std::chrono::milliseconds most = slow ? kSlowReader : kIdle;
      wake_.wait_for(lock, most, [&] { return !queued_->empty(); });
      std::swap(work, *queued_);
    }
    const BootTime now = boot_now();
    for (const auto& [key, node] : work.expected) {
      expected_[key] = node;
    }
    for (const LogKey& key : work.ended) {
      ended_[key] = now;
      keep_owner(key);
    }
    std::erase_if(ended_, [&](const auto& entry) {
      const bool over = now - entry.second > 2 * kGraceAfterEnd;
      if (over) {
        expected_.erase(entry.first);
      }
      return over;
    });
    write(work.appends, !work.ended.empty());
    for (FollowRequest& request : work.follows) {
      Follower follower{std::move(request), 1};
      follower.next = std::max<std::uint64_t>(follower.request.from_sequence, 1);
      if (follower.request.tail > 0) {
        const std::uint64_t tail = std::min(follower.request.tail, kTailMax);
        const Result<std::uint64_t> lines = store_->lines(follower.request.key);
        const std::uint64_t skipped = lines && *lines > tail ? *lines - tail : 0;
        follower.next = std::max(follower.next, skipped + 1);
      }
      followers_.push_back(std::move(follower));
    }
    slow = false;
    for (auto at = followers_.begin(); at != followers_.end();) {
      const bool stays = pump(*at, now);
      slow = slow || (stays && at->request.stream->queued_bytes() >= kAheadBytesMax);
      at = stays ? std::next(at) : followers_.erase(at);
    }
    if (work.stop) {
      for (const Follower& follower : followers_) {
        follower.request.stream->finish(
            Error{ErrorCode::Unavailable, "the market is being restarted; ask again"});
      }
      return;
    }
  }
}

// A node may deliver the lines of an ended lease long after: the file remembers whose they are.
void LogService::keep_owner(const LogKey& key) {
  const auto owner = expected_.find(key);
  if (owner != expected_.end()) {
    const Result<LogStore::Taken> kept = store_->append(key, owner->second, v1::LogAppend());
    if (!kept) {
      log_.warning("a log cannot be created", {{"reason", kept.error().message}});
    }
  }
}

void LogService::write(std::vector<Append>& appends, bool created) {
  std::vector<std::pair<const Append*, LogStore::Taken>> taken;
  for (const Append& append : appends) {
    const Result<LeaseId> lease = wire::parse_id<LeaseId>(append.lines.lease());
    if (!lease) {
      continue;
    }
    const LogKey key{*lease, append.lines.rank(), AttemptNumber(append.lines.attempt())};
    const auto owner = expected_.find(key);
    const bool may_create = owner != expected_.end() && owner->second == append.node;
    const Result<bool> exists = store_->exists(key);
    if (!may_create && (!exists || !*exists)) {
      continue;
    }
    const Result<LogStore::Taken> done = store_->append(key, append.node, append.lines);
    if (done) {
      metrics_.log_bytes(done->bytes);
      taken.emplace_back(&append, *done);
    } else {
      log_.warning("log lines were not kept",
                   {{"lease", append.lines.lease()}, {"reason", done.error().message}});
    }
  }
  if (taken.empty() && !created) {
    return;
  }
  const Result<void> synced = store_->sync();
  if (!synced) {
    log_.error("logs cannot be made durable", {{"reason", synced.error().message}});
    return;
  }
  for (const auto& [append, done] : taken) {
    append->acknowledge(done);
  }
}

bool LogService::pump(Follower& follower, BootTime now) {
  api::Stream& stream = *follower.request.stream;
  while (!stream.closed() && stream.queued_bytes() < kAheadBytesMax) {
    Result<v1::LogChunk> chunk = store_->read(follower.request.key, follower.next, kChunkBytes);
    if (!chunk) {
      stream.finish(chunk.error());
      return false;
    }
    const bool complete = chunk->complete();
    if (chunk->lines().empty() && !complete) {
      return finish_if_over(follower, now);
    }
    follower.next += static_cast<std::uint64_t>(chunk->lines_size());
    stream.send(wire::encode(follower.request.encoding, *chunk));
    if (complete) {
      stream.finish({});
      return false;
    }
  }
  return !stream.closed();
}

bool LogService::finish_if_over(Follower& follower, BootTime now) {
  api::Stream& stream = *follower.request.stream;
  const LogKey& key = follower.request.key;
  const auto ended = ended_.find(key);
  const bool live = expected_.contains(key);
  const bool over = ended != ended_.end() && now - ended->second >= kGraceAfterEnd;
  if (!follower.request.follow || over || !live) {
    stream.finish({});
    return false;
  }
  return true;
}

}  // namespace bmgpu::controld
