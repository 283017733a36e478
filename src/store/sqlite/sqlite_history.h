// The history projection in a SQLite database of its own.
#pragma once

#include <memory>
#include <string>

#include "store/history.h"

namespace bmgpu::store {

// Opens the history at `path` and creates it if it is not there. Unavailable if it cannot be
// opened, Refused if a newer version wrote it, DataLoss if it is damaged or something else.
Result<std::unique_ptr<HistoryWriter>> open_history_writer(const std::string& path);

// REQUIRES: a writer has opened it before. Reads through a connection of its own.
Result<std::unique_ptr<HistoryReader>> open_history_reader(const std::string& path);

}  // namespace bmgpu::store
