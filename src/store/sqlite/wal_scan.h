// Tells a write-ahead log that a crash tore from one that was damaged later. Private to
// src/store/sqlite.
//
// Problem: SQLite ends recovery at the first frame whose checksum is wrong, and drops all that
// follows without a word. After a crash that is right: only the last transaction can be torn, for
// it was the only one not yet synced. After damage (a flipped bit, a copied file with a hole) it
// loses acknowledged commits in silence.
//
// Example: [t1 t1c][t2 t2c][t3 t3c], c = commit frame. Bad t3: torn, never acknowledged. Bad t2: t2
// was synced before t3 began, so the frames of t3 behind a commit prove damage.
//
// Why it is right: it needs that frames of the present log's salts are whole transactions in order.
// Nothing is spilled before a commit, and the log is emptied whenever a commit failed and after
// every recovery (Database), so no left-over frames of an unfinished transaction lie behind. What
// it cannot see: damage to the last transaction, which looks like a torn one.
//
// Cost: one sequential read of the log, which is a few tens of MiB.
#pragma once

#include <string>

#include "base/result.h"

namespace bmgpu::store {

// DataLoss if the log beside the database at `path` lost committed transactions. No log is sound.
// REQUIRES: no process writes to it meanwhile.
Result<void> check_log(const std::string& path);

}  // namespace bmgpu::store
