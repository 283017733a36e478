// Batches of events, the snapshot and the market's incarnation, as tables. One row per batch.
// Private to src/store/sqlite.
#pragma once

#include <vector>

#include "store/encoding.h"
#include "store/journal.h"
#include "store/sqlite/rows.h"

namespace bmgpu::store {

class EventTables {
 public:
  explicit EventTables(Database& database) : database_(database) {}

  Result<void> prepare();

  // Fill their part of `loaded`; the snapshot comes before the tail. A new market gets its first
  // incarnation here.
  Result<void> load_incarnation(Loaded& loaded);
  Result<void> load_snapshot(Loaded& loaded);
  Result<void> load_tail(Loaded& loaded);

  // REQUIRES: inside a transaction.
  Result<void> insert_events(const Batch& batch, Sequence after);
  Result<void> replace_snapshot(Sequence sequence, const std::vector<core::Event>& events);
  Result<void> drop_events(Sequence cut);

  Result<std::vector<Recorded>> read(Sequence after, std::size_t limit);

 private:
  Result<void> read_part(Loaded& loaded, std::uint64_t expected);
  Result<void> read_batch(std::vector<Recorded>& to);  // the row that select_batches_ is at

  Database& database_;
  EventEncoder encoder_;
  Statement select_market_, insert_market_;
  Statement insert_batch_, drop_batches_, select_batches_;
  Statement drop_snapshot_, insert_part_, select_parts_;
};

}  // namespace bmgpu::store
