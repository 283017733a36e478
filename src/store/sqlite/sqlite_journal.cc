#include "store/sqlite/sqlite_journal.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "store/journal_rules.h"
#include "store/sqlite/database.h"
#include "store/sqlite/document_tables.h"
#include "store/sqlite/event_tables.h"
#include "store/sqlite/migrations.h"
#include "store/sqlite/wal_scan.h"

namespace bmgpu::store {
namespace {

// At this size of the log it is moved into the database, which costs a pause of some milliseconds:
// rare enough to stay out of the 99th percentile of single commits.
constexpr std::int64_t kCheckpointPages = 4096;  // 16 MiB

constexpr std::array kSteps = {
    "CREATE TABLE market (incarnation INTEGER NOT NULL, checksum INTEGER NOT NULL);"
    "CREATE TABLE batches (first_sequence INTEGER PRIMARY KEY, count INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL, payload BLOB NOT NULL);"
    "CREATE TABLE snapshot_parts (part INTEGER PRIMARY KEY, parts INTEGER NOT NULL,"
    " sequence INTEGER NOT NULL, checksum INTEGER NOT NULL, payload BLOB NOT NULL);"
    "CREATE TABLE documents (kind TEXT NOT NULL, id INTEGER NOT NULL, account INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;"
    "CREATE TABLE answers (arrival INTEGER PRIMARY KEY, account INTEGER NOT NULL,"
    " key TEXT NOT NULL, at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " request BLOB NOT NULL, answer BLOB NOT NULL, UNIQUE (account, key));",
    "",  // 2: events of schema version 3, which a reader of format 1 does not know
};

class SqliteJournal final : public Journal {
 public:
  explicit SqliteJournal(std::unique_ptr<Database> database)
      : database_(std::move(database)), events_(*database_), documents_(*database_) {}
  ~SqliteJournal() override;
  SqliteJournal(const SqliteJournal&) = delete;
  SqliteJournal& operator=(const SqliteJournal&) = delete;

  Result<void> prepare();

  Result<Loaded> load() override;
  Result<Sequence> append(const Batch& batch, Sequence expected) override;
  Result<void> write_snapshot(Sequence sequence, const std::vector<core::Event>& events,
                              Sequence cut) override;
  Result<std::vector<Recorded>> read(Sequence after, std::size_t limit) override {
    return events_.read(after, limit);
  }
  Result<std::optional<StoredAnswer>> find_answer(AccountId account,
                                                  std::string_view key) override {
    return documents_.find_answer(account, key);
  }
  Result<std::optional<Document>> find_document(std::string_view kind, std::uint64_t id) override {
    return documents_.find_document(kind, id);
  }
  Result<std::vector<Document>> documents(std::string_view kind) override {
    return documents_.documents(kind);
  }
  const SyncLatency& sync_latency() const override { return database_->latency(); }

 private:
  Result<void> write(const Batch& batch);
  Result<Loaded> read_all();

  std::unique_ptr<Database> database_;
  EventTables events_;
  DocumentTables documents_;
  bool loaded_ = false;
  Sequence last_;
  Instant last_at_;
};

// Leaves everything in the database file, so that a copy of it alone is whole. Failing is harmless:
// the log is durable.
SqliteJournal::~SqliteJournal() {
  if (loaded_) {
    static_cast<void>(database_->checkpoint(Database::Checkpoint::Truncate));
  }
}

Result<void> SqliteJournal::prepare() {
  Result<void> prepared = events_.prepare();
  return prepared ? documents_.prepare() : prepared;
}

Result<Loaded> SqliteJournal::load() {
  Result<Loaded> loaded = read_all();
  if (loaded) {
    loaded_ = true;
    last_ = loaded->last;
    last_at_ = loaded->tail.empty() ? Instant() : loaded->tail.back().at;
  }
  return loaded;
}

Result<Loaded> SqliteJournal::read_all() {
  // Rows carry checksums; what could be missing without a trace is found by SQLite's own check.
  const Result<std::string> verdict = database_->text_of("PRAGMA quick_check(1)");
  if (!verdict) {
    return verdict.error();
  }
  if (*verdict != "ok") {
    return damaged(*database_, *verdict);
  }
  Loaded loaded;
  Result<void> read = events_.load_incarnation(loaded);
  if (read) {
    read = events_.load_snapshot(loaded);
  }
  if (read) {
    read = events_.load_tail(loaded);
  }
  if (!read) {
    return read.error();
  }
  return loaded;
}

Result<Sequence> SqliteJournal::append(const Batch& batch, Sequence expected) {
  check(loaded_, "journal: load() comes first");
  if (expected != last_) {
    return second_writer(expected, last_);
  }
  if (batch.empty()) {
    return last_;
  }
  if (const Result<void> written = write(batch); !written) {
    return written.error();
  }
  last_ = Sequence(last_.value() + batch.events.size());
  last_at_ = std::max(last_at_, batch.at);
  if (database_->wal_pages() >= kCheckpointPages) {
    // A full disk leaves everything in the log, where it is durable too; the next commit says so.
    static_cast<void>(database_->checkpoint(Database::Checkpoint::Keep));
  }
  return last_;
}

Result<void> SqliteJournal::write(const Batch& batch) {
  return database_->transaction([&]() -> Result<void> {
    Result<void> done = events_.insert_events(batch, last_);
    if (done) {
      done = documents_.change_documents(batch.documents);
    }
    if (done) {
      done = documents_.insert_answers(batch.answers);
    }
    return done;
  });
}

Result<void> SqliteJournal::write_snapshot(Sequence sequence,
                                           const std::vector<core::Event>& events, Sequence cut) {
  check(loaded_, "journal: load() comes first");
  check_cut(sequence, cut, last_);
  const Result<void> written = database_->transaction([&]() -> Result<void> {
    Result<void> done = events_.replace_snapshot(sequence, events);
    if (done) {
      done = events_.drop_events(cut);
    }
    if (done) {
      done = documents_.drop_answers(last_at_ - kAnswerLifetime);
    }
    return done;
  });
  if (written) {
    static_cast<void>(database_->checkpoint(Database::Checkpoint::Truncate));
  }
  return written;
}

}  // namespace

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path) {
  Result<std::unique_ptr<Database>> database = Database::open(path, Access::Owner);
  if (!database) {
    return database.error();
  }
  Database& opened = **database;
  Result<void> ready = check_log(path);
  if (ready) {
    ready = opened.checkpoint(Database::Checkpoint::Truncate);
  }
  if (ready) {
    ready = migrate(opened, {"journal", kSteps});
  }
  if (!ready) {
    return ready.error();
  }
  probe_disk(path, opened.latency());
  auto journal = std::make_unique<SqliteJournal>(std::move(*database));
  if (ready = journal->prepare(); !ready) {
    return ready.error();
  }
  return std::unique_ptr<Journal>(std::move(journal));
}

}  // namespace bmgpu::store
