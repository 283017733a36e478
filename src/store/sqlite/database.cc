#include "store/sqlite/database.h"

#include <sqlite3.h>

#include "base/check.h"
#include "store/sqlite/watched_vfs.h"

namespace bmgpu::store {
namespace {

Error damaged_file(const std::string& path, const std::string& what) {
  return {ErrorCode::DataLoss, path + " is damaged (" + what + "): restore it from a backup"};
}

Error failure(sqlite3* connection, const std::string& path, int rc) {
  if (rc == SQLITE_IOERR_DATA) {
    return damaged_file(path, "a page is not what was written");
  }
  switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::Unavailable,
              path + " is open in another process: only one may have it; stop that one first"};
    case SQLITE_FULL:
      return {ErrorCode::Unavailable, "the disk of " + path +
                                          " is full: read-only until there is room again; nothing "
                                          "of this change was kept"};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return {ErrorCode::Unavailable, path +
                                          " cannot be opened for writing: check that its folder "
                                          "exists and belongs to the user of this process"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damaged_file(path, sqlite3_errmsg(connection));
    default:
      return {ErrorCode::Internal, "SQLite failed on " + path + ": " + sqlite3_errmsg(connection)};
  }
}

Error failure(sqlite3_stmt* statement, int rc) {
  sqlite3* connection = sqlite3_db_handle(statement);
  return failure(connection, sqlite3_db_filename(connection, "main"), rc);
}

int on_wal(void* pages, sqlite3*, const char*, int count) {
  *static_cast<std::int64_t*>(pages) = count;
  return SQLITE_OK;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), parameter, value) == SQLITE_OK,
        "store: no such parameter");
  return *this;
}

Statement& Statement::bind(int parameter, std::uint64_t value) {
  return bind(parameter, static_cast<std::int64_t>(value));
}

Statement& Statement::bind_text(int parameter, std::string_view text) {
  check(sqlite3_bind_text64(statement_.get(), parameter, text.data() == nullptr ? "" : text.data(),
                            text.size(), SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK,
        "store: no such parameter, or a text beyond SQLite's limit");
  return *this;
}

Statement& Statement::bind_bytes(int parameter, std::string_view bytes) {
  check(
      sqlite3_bind_blob64(statement_.get(), parameter, bytes.data() == nullptr ? "" : bytes.data(),
                          bytes.size(), SQLITE_STATIC) == SQLITE_OK,
      "store: no such parameter, or bytes beyond SQLite's limit");
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  check(sqlite3_bind_null(statement_.get(), parameter) == SQLITE_OK, "store: no such parameter");
  return *this;
}

Result<bool> Statement::step() {
  const int rc = sqlite3_step(statement_.get());
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
    return rc == SQLITE_ROW;
  }
  return failure(statement_.get(), rc);
}

Result<void> Statement::run() {
  const Result<bool> stepped = step();
  reset();
  if (!stepped) {
    return stepped.error();
  }
  return {};
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

Database::Database(const std::string& path, Access access)
    : path_(path),
      vfs_(std::make_unique<WatchedVfs>(access == Access::Owner ? WatchedVfs::Use::Sole
                                                                : WatchedVfs::Use::Shared)) {}

Database::~Database() {
  begin_ = Statement();
  commit_ = Statement();
  check(sqlite3_close(connection_) == SQLITE_OK, "store: a database is closed while it is in use");
}

SyncLatency& Database::latency() { return vfs_->latency(); }

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Access access) {
  std::unique_ptr<Database> database(new Database(path, access));
  if (Result<void> connected = database->connect(access); !connected) {
    return connected.error();
  }
  if (Result<void> configured = database->configure(access); !configured) {
    return configured.error();
  }
  return database;
}

Result<void> Database::connect(Access access) {
  const int mode =
      access == Access::Reader ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int rc =
      sqlite3_open_v2(path_.c_str(), &connection_,
                      mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs_->name().c_str());
  if (rc != SQLITE_OK) {
    return failure(connection_, path_, rc);
  }
  sqlite3_wal_hook(connection_, on_wal, &wal_pages_);
  // Closing must not move a log that was found damaged into the database.
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (access == Access::Owner) {
    int reserved = WatchedVfs::kReservedBytes;  // for a new file; an old one has its own
    sqlite3_file_control(connection_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  }
  return {};
}

Result<void> Database::configure(Access access) {
  // The log is never spilled before a commit: what lies in it is whole transactions (wal_scan.h).
  const bool is_owner = access == Access::Owner;
  const std::string settings =
      std::string(is_owner ? "PRAGMA locking_mode=EXCLUSIVE;" : "PRAGMA busy_timeout=5000;") +
      (access == Access::Reader ? "" : "PRAGMA journal_mode=WAL;") +
      "PRAGMA synchronous=" + (is_owner ? "FULL" : "NORMAL") +
      ";PRAGMA wal_autocheckpoint=0;PRAGMA cache_spill=OFF;PRAGMA cache_size=-65536;"
      "PRAGMA temp_store=MEMORY;PRAGMA trusted_schema=OFF;";
  if (Result<void> set = execute(settings.c_str()); !set) {
    return set;
  }
  // Taking the lock now, and for the whole life of an owner, is what keeps a second process out.
  if (is_owner) {
    if (Result<void> locked = execute("BEGIN EXCLUSIVE; COMMIT;"); !locked) {
      return locked;
    }
  }
  if (vfs_->is_foreign()) {
    return Error{ErrorCode::DataLoss,
                 path_ +
                     " is not a database of bmd, or its header is damaged: name the right "
                     "file, or restore it from a backup"};
  }
  const Result<std::string> journal = text_of("PRAGMA journal_mode");
  const Result<std::int64_t> synchronous = number_of("PRAGMA synchronous");
  const Result<std::string> locking = text_of("PRAGMA locking_mode");
  if (!journal || !synchronous || !locking) {
    return !journal ? journal.error() : !synchronous ? synchronous.error() : locking.error();
  }
  const std::int64_t wanted = is_owner ? 2 : 1;  // FULL, NORMAL
  if (*journal != "wal" || *synchronous != wanted ||
      *locking != (is_owner ? "exclusive" : "normal")) {
    return Error{ErrorCode::Unavailable,
                 path_ +
                     " cannot be written durably: SQLite refuses WAL or synchronous=FULL on "
                     "this file system (journal " +
                     *journal + ", synchronous " + std::to_string(*synchronous) +
                     "); put it on a local disk"};
  }
  Result<Statement> begin = prepare(access == Access::Reader ? "BEGIN" : "BEGIN IMMEDIATE");
  Result<Statement> commit = prepare("COMMIT");
  if (!begin || !commit) {
    return !begin ? begin.error() : commit.error();
  }
  begin_ = std::move(*begin);
  commit_ = std::move(*commit);
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* prepared = nullptr;
  const int rc = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
  if (rc != SQLITE_OK) {
    return failure(connection_, path_, rc);
  }
  Statement statement;
  statement.statement_.reset(prepared);
  return statement;
}

Result<void> Database::execute(const char* sql) {
  const int rc = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) {
    const Error error = failure(connection_, path_, rc);
    roll_back();
    return error;
  }
  return {};
}

Result<std::int64_t> Database::number_of(std::string_view sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) {
    return statement.error();
  }
  const Result<bool> row = statement->step();
  if (!row) {
    return row.error();
  }
  return *row ? statement->number(0) : 0;
}

Result<std::string> Database::text_of(std::string_view sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) {
    return statement.error();
  }
  const Result<bool> row = statement->step();
  if (!row) {
    return row.error();
  }
  return *row ? statement->text(0) : std::string();
}

Result<void> Database::begin() {
  if (log_has_leftovers_) {
    if (Result<void> emptied = checkpoint(Checkpoint::Truncate); !emptied) {
      return emptied;
    }
    log_has_leftovers_ = false;
  }
  return begin_.run();
}

Result<void> Database::commit() {
  Result<void> committed = commit_.run();
  log_has_leftovers_ = !committed;
  return committed;
}

void Database::roll_back() {
  if (sqlite3_get_autocommit(connection_) == 0) {
    // It can fail only where SQLite has rolled back already.
    sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Result<void> Database::checkpoint(Checkpoint mode) {
  int in_log = 0;
  int moved = 0;
  const int rc = sqlite3_wal_checkpoint_v2(
      connection_, nullptr,
      mode == Checkpoint::Truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
      &in_log, &moved);
  if (rc != SQLITE_OK) {
    return failure(connection_, path_, rc);
  }
  if (in_log == moved) {
    wal_pages_ = 0;
  }
  return {};
}

}  // namespace bmgpu::store
