// The files under a SQLite database, watched.
//
// Every sync is timed. An I/O error stops the process: SQLite itself drops some of them (a failed
// sync in a checkpoint shows up in no return value), and after one nothing about the file can be
// promised. A full disk is passed on.
//
// Where no other connection ever writes the files (Use::Sole), it does two things more:
// - Every page of the database file carries a checksum in its last 8 bytes, which SQLite leaves
//   free: a changed or misplaced page reads as damage, where SQLite would believe an index with a
//   flipped bit and find nothing. The log has checksums of its own.
// - Writes to the log that follow one another are joined up to the sync that ends every commit: a
// few
//   system calls instead of two per page.
//
// Private to src/store/sqlite. One per connection; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "store/sync_latency.h"

struct sqlite3_vfs;

namespace bmgpu::store {

class WatchedVfs {
 public:
  enum class Use { Sole, Shared };

  // Registers itself with SQLite under name() until it is destroyed. REQUIRES: the connections that
  // use it are closed before that.
  explicit WatchedVfs(Use use);
  ~WatchedVfs();
  WatchedVfs(const WatchedVfs&) = delete;
  WatchedVfs& operator=(const WatchedVfs&) = delete;

  static constexpr int kReservedBytes = 8;

  const std::string& name() const { return name_; }
  SyncLatency& latency() { return state_.latency; }
  // The file is a database whose pages carry no checksums, although they should.
  bool is_foreign() const { return state_.is_foreign; }

  // What the files of the connection share.
  struct State {
    SyncLatency latency;
    Use use = Use::Shared;
    bool is_foreign = false;
    std::string page;       // being written
    std::string unwritten;  // of the log, from unwritten_at on
    std::int64_t unwritten_at = 0;
  };

 private:
  std::string name_;
  State state_;
  std::unique_ptr<sqlite3_vfs> vfs_;
};

}  // namespace bmgpu::store
