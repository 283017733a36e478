#include "store/sqlite/event_tables.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

namespace bmgpu::store {
namespace {

constexpr std::size_t kEventsPerSnapshotPart = 4096;

}  // namespace

Result<void> EventTables::prepare() {
  const std::array statements = {
      StatementText{&select_market_, "SELECT incarnation, checksum FROM market"},
      StatementText{&insert_market_, "INSERT INTO market VALUES (?1, ?2)"},
      StatementText{&insert_batch_, "INSERT INTO batches VALUES (?1, ?2, ?3, ?4, ?5)"},
      StatementText{&drop_batches_,
                    "DELETE FROM batches WHERE first_sequence <= ?1"
                    " AND first_sequence + count - 1 <= ?1"},
      StatementText{&select_batches_,
                    "SELECT first_sequence, count, at_ms, checksum, payload FROM batches"
                    " WHERE first_sequence >= (SELECT ifnull(max(first_sequence), 0)"
                    " FROM batches WHERE first_sequence <= ?1) ORDER BY first_sequence"},
      StatementText{&drop_snapshot_, "DELETE FROM snapshot_parts"},
      StatementText{&insert_part_, "INSERT INTO snapshot_parts VALUES (?1, ?2, ?3, ?4, ?5)"},
      StatementText{&select_parts_,
                    "SELECT part, parts, sequence, checksum, payload FROM snapshot_parts"
                    " ORDER BY part"},
  };
  return prepare_all(database_, statements);
}

Result<void> EventTables::load_incarnation(Loaded& loaded) {
  Query query(select_market_);
  const Result<bool> row = select_market_.step();
  if (!row) {
    return row.error();
  }
  if (!*row) {
    loaded.incarnation = Incarnation(1);
    const std::uint64_t first = loaded.incarnation.value();
    return insert_market_.bind(1, first).bind(2, row_checksum({first}, "")).run();
  }
  loaded.incarnation = Incarnation(select_market_.id(0));
  const bool sound = select_market_.id(1) == row_checksum({loaded.incarnation.value()}, "");
  return sound ? Result<void>() : damaged(database_, "its incarnation");
}

Result<void> EventTables::load_snapshot(Loaded& loaded) {
  Query query(select_parts_);
  std::uint64_t seen = 0;
  std::uint64_t promised = 0;
  for (;;) {
    const Result<bool> row = select_parts_.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      break;
    }
    promised = select_parts_.id(1);
    if (Result<void> read = read_part(loaded, seen); !read) {
      return read;
    }
    ++seen;
  }
  return seen == promised ? Result<void>() : damaged(database_, "the snapshot has holes");
}

Result<void> EventTables::read_part(Loaded& loaded, std::uint64_t expected) {
  const std::uint64_t part = select_parts_.id(0);
  const std::uint64_t parts = select_parts_.id(1);
  const Sequence sequence(select_parts_.id(2));
  const std::string_view payload = select_parts_.bytes(4);
  const bool fits = part == expected && (part == 0 || sequence == loaded.snapshot_sequence);
  if (!fits || select_parts_.id(3) != row_checksum({part, parts, sequence.value()}, payload)) {
    return damaged(database_, "part " + std::to_string(expected) + " of the snapshot");
  }
  loaded.snapshot_sequence = sequence;
  return decode_events(payload, loaded.snapshot);
}

Result<void> EventTables::load_tail(Loaded& loaded) {
  const Sequence after = loaded.snapshot_sequence;
  loaded.last = after;
  Query query(select_batches_);
  select_batches_.bind(1, after.value() + 1);
  std::vector<Recorded> events;
  for (bool is_first = true;; is_first = false) {
    const Result<bool> row = select_batches_.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      return {};
    }
    events.clear();
    if (Result<void> read = read_batch(events); !read) {
      return read;
    }
    // The first row may begin before the snapshot's end; from there on there are no holes.
    const Sequence next(loaded.last.value() + 1);
    const Sequence found = events.front().sequence;
    if (is_first ? found > next : found != next) {
      return damaged(database_, "events are missing before " + std::to_string(found.value()));
    }
    for (Recorded& event : events) {
      if (event.sequence > after) {
        loaded.last = event.sequence;
        loaded.tail.push_back(std::move(event));
      }
    }
  }
}

Result<void> EventTables::read_batch(std::vector<Recorded>& to) {
  const std::uint64_t first = select_batches_.id(0);
  const std::uint64_t count = select_batches_.id(1);
  const std::uint64_t at_ms = select_batches_.id(2);
  const std::string_view payload = select_batches_.bytes(4);
  const auto name = [&] { return "the batch of event " + std::to_string(first); };
  if (select_batches_.id(3) != row_checksum({first, count, at_ms}, payload)) {
    return damaged(database_, name());
  }
  std::vector<core::Event> events;
  if (Result<void> read = decode_events(payload, events); !read) {
    return Error{read.error().code, database_.path() + ", " + name() + ": " + read.error().message};
  }
  if (events.empty() || events.size() != count) {
    return damaged(database_, name());
  }
  const Instant at(static_cast<std::int64_t>(at_ms));
  for (std::uint64_t i = 0; i < count; ++i) {
    to.push_back({Sequence(first + i), at, std::move(events[i])});
  }
  return {};
}

Result<void> EventTables::insert_events(const Batch& batch, Sequence after) {
  if (batch.events.empty()) {
    return {};
  }
  const std::string_view payload = encoder_.encode(batch.events);
  const std::uint64_t first = after.value() + 1;
  const std::uint64_t count = batch.events.size();
  const auto at_ms = static_cast<std::uint64_t>(batch.at.unix_ms());
  return insert_batch_.bind(1, first)
      .bind(2, count)
      .bind(3, at_ms)
      .bind(4, row_checksum({first, count, at_ms}, payload))
      .bind_bytes(5, payload)
      .run();
}

Result<void> EventTables::replace_snapshot(Sequence sequence,
                                           const std::vector<core::Event>& events) {
  if (Result<void> emptied = drop_snapshot_.run(); !emptied) {
    return emptied;
  }
  // A snapshot of nothing has one empty part, so that it is there.
  const std::span<const core::Event> all(events);
  const std::uint64_t parts = std::max<std::uint64_t>(
      1, (events.size() + kEventsPerSnapshotPart - 1) / kEventsPerSnapshotPart);
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::size_t from = part * kEventsPerSnapshotPart;
    const std::size_t count = std::min(kEventsPerSnapshotPart, events.size() - from);
    const std::string_view payload = encoder_.encode(all.subspan(from, count));
    insert_part_.bind(1, part)
        .bind(2, parts)
        .bind(3, sequence.value())
        .bind(4, row_checksum({part, parts, sequence.value()}, payload))
        .bind_bytes(5, payload);
    if (Result<void> done = insert_part_.run(); !done) {
      return done;
    }
  }
  return {};
}

Result<void> EventTables::drop_events(Sequence cut) {
  return drop_batches_.bind(1, cut.value()).run();
}

Result<std::vector<Recorded>> EventTables::read(Sequence after, std::size_t limit) {
  std::vector<Recorded> found;
  Query query(select_batches_);
  select_batches_.bind(1, after.value() + 1);
  while (found.size() < limit) {
    const Result<bool> row = select_batches_.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      break;
    }
    if (Result<void> read = read_batch(found); !read) {
      return read.error();
    }
    if (found.front().sequence <= after) {
      std::erase_if(found, [&](const Recorded& event) { return event.sequence <= after; });
    }
  }
  if (found.size() > limit) {
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(limit), found.end());
  }
  return found;
}

}  // namespace bmgpu::store
