#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "store/sqlite/history_projection.h"
#include "store/sqlite/history_tables.h"
#include "store/sqlite/migrations.h"
#include "store/sqlite/sqlite_history.h"

namespace bmgpu::store {
namespace {

constexpr std::int64_t kCheckpointPages = 4096;  // 16 MiB

class SqliteHistoryWriter final : public HistoryWriter {
 public:
  explicit SqliteHistoryWriter(std::unique_ptr<Database> database)
      : database_(std::move(database)), projection_(*database_) {}

  Result<void> prepare();

  Sequence applied() const override { return applied_; }
  Result<void> start_from(const std::vector<core::Event>& snapshot, Sequence sequence) override;
  Result<void> apply(std::span<const Recorded> events) override;
  Result<Sequence> make_durable() override;

 private:
  Result<void> apply_new(std::span<const Recorded> events);
  Result<void> set_applied(Sequence sequence) {
    return set_applied_.bind(1, sequence.value()).run();
  }

  std::unique_ptr<Database> database_;
  HistoryProjection projection_;
  Statement set_applied_;
  Sequence applied_;
  Sequence durable_;
};

Result<void> SqliteHistoryWriter::prepare() {
  const std::array statements = {
      StatementText{&set_applied_, "UPDATE progress SET applied = ?1"},
  };
  if (Result<void> prepared = prepare_all(*database_, statements); !prepared) {
    return prepared;
  }
  const Result<std::int64_t> applied = database_->number_of("SELECT applied FROM progress");
  if (!applied) {
    return applied.error();
  }
  applied_ = Sequence(static_cast<std::uint64_t>(*applied));
  return projection_.prepare();
}

Result<void> SqliteHistoryWriter::start_from(const std::vector<core::Event>& snapshot,
                                             Sequence sequence) {
  check(applied_.is_none(), "history: only an empty one starts from a snapshot");
  Result<void> done = database_->transaction([&]() -> Result<void> {
    for (const core::Event& event : snapshot) {
      // Created when the lease was granted, for all that a snapshot knows.
      const auto* granted = std::get_if<core::LeaseGranted>(&event);
      const Instant at = granted != nullptr ? granted->lease.placed : Instant();
      if (Result<void> projected = projection_.project({sequence, at, event}); !projected) {
        return projected;
      }
    }
    return set_applied(sequence);
  });
  if (!done) {
    return done;
  }
  applied_ = sequence;
  return {};
}

Result<void> SqliteHistoryWriter::apply(std::span<const Recorded> events) {
  while (!events.empty() && events.front().sequence <= applied_) {
    events = events.subspan(1);
  }
  if (events.empty()) {
    return {};
  }
  if (events.front().sequence.value() != applied_.value() + 1) {
    return Error{ErrorCode::DataLoss,
                 database_->path() + " ends at event " + std::to_string(applied_.value()) +
                     ", the next one given is " + std::to_string(events.front().sequence.value()) +
                     ": move the file away to make a new history from the journal"};
  }
  if (Result<void> done = apply_new(events); !done) {
    return done;
  }
  applied_ = events.back().sequence;
  if (database_->wal_pages() >= kCheckpointPages) {
    // Waits for no reader; what it cannot move now it moves the next time.
    static_cast<void>(database_->checkpoint(Database::Checkpoint::Keep));
  }
  return {};
}

Result<void> SqliteHistoryWriter::apply_new(std::span<const Recorded> events) {
  return database_->transaction([&]() -> Result<void> {
    for (const Recorded& recorded : events) {
      Result<void> done = projection_.project(recorded);
      if (done) {
        done = projection_.note(recorded);
      }
      if (!done) {
        return done;
      }
    }
    return set_applied(events.back().sequence);
  });
}

Result<Sequence> SqliteHistoryWriter::make_durable() {
  // A checkpoint that moves everything has synced it; a reader may keep it from that.
  if (Result<void> moved = database_->checkpoint(Database::Checkpoint::Keep); !moved) {
    return moved.error();
  }
  if (database_->wal_pages() == 0) {
    durable_ = applied_;
  }
  return durable_;
}

}  // namespace

Result<std::unique_ptr<HistoryWriter>> open_history_writer(const std::string& path) {
  Result<std::unique_ptr<Database>> database = Database::open(path, Access::Writer);
  if (!database) {
    return database.error();
  }
  if (Result<void> ready = migrate(**database, {"history", kHistorySteps}); !ready) {
    return ready.error();
  }
  auto history = std::make_unique<SqliteHistoryWriter>(std::move(*database));
  if (Result<void> ready = history->prepare(); !ready) {
    return ready.error();
  }
  return std::unique_ptr<HistoryWriter>(std::move(history));
}

}  // namespace bmgpu::store
