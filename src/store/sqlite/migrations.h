// The versions of a database's tables. Private to src/store/sqlite.
#pragma once

#include <span>
#include <string_view>

#include "store/sqlite/database.h"

namespace bmgpu::store {

// Step n (from 1) brings version n−1 to n. A step that was released is never changed.
struct Migrations {
  std::string_view what;  // "journal", "history": must match what the file says it is
  std::span<const char* const> steps;
};

// Brings the tables to the newest version, each step in a transaction of its own. Refused if the
// file is of a newer version; DataLoss if it is a database of something else.
Result<void> migrate(Database& database, const Migrations& migrations);

}  // namespace bmgpu::store
