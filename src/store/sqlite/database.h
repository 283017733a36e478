// SQLite as the store uses it: connections and prepared statements as owners, failures as Results.
// Private to src/store/sqlite. One thread at a time per connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/sync_latency.h"

struct sqlite3;
struct sqlite3_stmt;

namespace bmgpu::store {

class WatchedVfs;

// A prepared statement. Parameters and columns count from 1 and 0, as in SQLite. Bound bytes are
// not copied: they must live until the statement is reset.
class Statement {
 public:
  Statement() = default;

  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, std::uint64_t value);
  Statement& bind_text(int parameter, std::string_view text);
  Statement& bind_bytes(int parameter, std::string_view bytes);
  Statement& bind_null(int parameter);

  // True: a row is there to be read. False: no more rows.
  Result<bool> step();
  // For statements without rows: steps once and resets.
  Result<void> run();
  void reset();

  std::int64_t number(int column) const;
  std::uint64_t id(int column) const { return static_cast<std::uint64_t>(number(column)); }
  std::string_view bytes(int column) const;  // valid until the next step() or reset()
  std::string text(int column) const { return std::string(bytes(column)); }
  bool is_null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Resets a statement when the scope ends, so that no read stays open behind it.
class Query {
 public:
  explicit Query(Statement& statement) : statement_(statement) {}
  ~Query() { statement_.reset(); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

 private:
  Statement& statement_;
};

enum class Access {
  Owner,   // the only process with the file open, from now until it is closed
  Writer,  // the only writer; readers may be beside it
  Reader,  // reads only
};

class Database {
 public:
  // Creates the file if there is none (not for Access::Reader), and reads every setting that
  // durability rests on back. Unavailable if another process holds it or it cannot be opened;
  // DataLoss if it is not a sound database.
  static Result<std::unique_ptr<Database>> open(const std::string& path, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // REQUIRES: `sql` is one correct statement for the present schema.
  Result<Statement> prepare(std::string_view sql);
  // Any number of statements whose rows do not matter.
  Result<void> execute(const char* sql);
  // The first column of the first row of a query; 0 or "" if there is no row.
  Result<std::int64_t> number_of(std::string_view sql);
  Result<std::string> text_of(std::string_view sql);

  // Runs `body` in a transaction: all of it is committed, or, if it fails, nothing.
  template <typename Body>
  Result<void> transaction(Body body);

  // Moves the write-ahead log into the database file; `truncate` empties the log's file too.
  enum class Checkpoint { Keep, Truncate };
  Result<void> checkpoint(Checkpoint mode);
  // Pages in the write-ahead log since the last checkpoint that moved them all.
  std::int64_t wal_pages() const { return wal_pages_; }

  const std::string& path() const { return path_; }
  SyncLatency& latency();

 private:
  Database(const std::string& path, Access access);
  Result<void> connect(Access access);
  Result<void> configure(Access access);
  Result<void> begin();
  Result<void> commit();
  void roll_back();

  std::string path_;
  std::unique_ptr<WatchedVfs> vfs_;
  sqlite3* connection_ = nullptr;
  std::int64_t wal_pages_ = 0;
  bool log_has_leftovers_ = false;  // frames of a commit that failed: emptied before the next one
  Statement begin_;
  Statement commit_;
};

template <typename Body>
Result<void> Database::transaction(Body body) {
  if (Result<void> begun = begin(); !begun) {
    return begun;
  }
  Result<void> done = body();
  if (done) {
    done = commit();
  }
  if (!done) {
    roll_back();
  }
  return done;
}

// Measures what a synced write of 4 KiB takes beside `path` and notes the median.
void probe_disk(const std::string& path, SyncLatency& latency);

}  // namespace bmgpu::store
