// The files under a SQLite database, watched: every sync is timed, and an I/O error stops the
// process. SQLite itself drops some of those errors (a failed sync in a checkpoint shows up in no
// return value), and after one nothing about the file can be promised. A full disk is passed on.
//
// Private to src/store/sqlite. One per connection; one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "store/sync_latency.h"

struct sqlite3_vfs;

namespace bmgpu::store {

class WatchedVfs {
 public:
  // Registers itself with SQLite under name() until it is destroyed. REQUIRES: the connections that
  // use it are closed before that.
  WatchedVfs();
  ~WatchedVfs();
  WatchedVfs(const WatchedVfs&) = delete;
  WatchedVfs& operator=(const WatchedVfs&) = delete;

  const std::string& name() const { return name_; }
  SyncLatency& latency() { return latency_; }

 private:
  std::string name_;
  SyncLatency latency_;
  std::unique_ptr<sqlite3_vfs> vfs_;
};

}  // namespace bmgpu::store
