// Job logs on disk: one file per attempt, line number = sequence, no gaps.
//
// A file is a row of records {length, checksum, bytes}: a header that says whose lines these are,
// then one LogLine each, then at most one end mark. A torn record at the end (power loss before
// sync()) is cut off when the file is opened; nobody was told that its line is safe.
//
// One thread at a time. An attempt's log has a limit: the line that would pass it is replaced by a
// note, what follows is dropped and counted as taken, so that the node does not keep it for ever.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace bmgpu::v1 {
class LogAppend;
class LogChunk;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

struct LogKey {
  LeaseId lease;
  std::uint32_t rank = 0;
  AttemptNumber attempt{1};
  friend auto operator<=>(const LogKey&, const LogKey&) = default;
};

struct LogLimits {
  std::uint64_t attempt_bytes_max = std::uint64_t{256} << 20;
  std::uint64_t total_bytes_max = std::uint64_t{64} << 30;
  std::size_t open_files_max = 256;
};

class LogStore {
 public:
  static Result<std::unique_ptr<LogStore>> open(std::string directory, LogLimits limits);
  ~LogStore();
  LogStore(const LogStore&) = delete;
  LogStore& operator=(const LogStore&) = delete;

  struct Taken {
    std::uint64_t next_sequence = 1;  // the first line that is wanted
    bool complete = false;
    std::size_t bytes = 0;  // newly written
  };
  // Appends the lines that follow what is there; earlier ones are skipped, those after a gap are
  // not taken. Durable only after sync(). NotFound: the log belongs to another node.
  Result<Taken> append(const LogKey& key, NodeId node, const v1::LogAppend& lines);

  // Makes every append so far durable; then drops the oldest complete logs if all together are over
  // their limit.
  Result<void> sync();

  // Lines from `sequence` on, about `bytes_max` of them; complete if the log ends with them. A log
  // that does not exist has no lines and is not complete.
  Result<v1::LogChunk> read(const LogKey& key, std::uint64_t sequence, std::size_t bytes_max);

  // Whether anything is there, be it without lines.
  Result<bool> exists(const LogKey& key);

  // Lines that the log has now.
  Result<std::uint64_t> lines(const LogKey& key);

 private:
  struct File;
  LogStore(std::string directory, LogLimits limits);
  std::string path(const LogKey& key) const;
  Result<File*> find(const LogKey& key);  // null: there is none
  Result<File*> ensure(const LogKey& key, NodeId node);
  void use(File& file);
  Result<void> measure();
  void drop_oldest();

  const std::string directory_;
  const LogLimits limits_;
  std::map<LogKey, std::unique_ptr<File>> files_;
  std::list<LogKey> recently_used_;  // newest first
  std::set<LogKey> unsynced_;
  std::uint64_t total_bytes_ = 0;
  bool directory_unsynced_ = false;
};

}  // namespace bmgpu::controld
