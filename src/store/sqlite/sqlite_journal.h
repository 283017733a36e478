// The journal in a SQLite database: WAL, synchronous=FULL, one connection that writes and
// checkpoints.
//
// The database is locked by SQLite's own exclusive lock for as long as the journal lives: it also
// keeps out what a lock file would not (the sqlite3 shell, a backup script), needs no shared-memory
// file, and goes with the process however that ends (docs/adr/0005-journal.md).
#pragma once

#include <memory>
#include <string>

#include "store/journal.h"

namespace bmgpu::store {

// Opens the journal at `path` and creates it if it is not there. Unavailable if another process has
// it open or it cannot be written durably; Refused if a newer version wrote it; DataLoss if it is
// damaged or something else.
Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path);

}  // namespace bmgpu::store
