// A journal in memory: for simulation and for tests of what sits on top. As durable as the storage
// object is alive.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/journal.h"

namespace bmgpu::store {

// What a disk is to the real journal: outlives the journals that are opened on it.
struct MemoryStorage {
  Incarnation incarnation{1};
  std::vector<core::Event> snapshot;
  Sequence snapshot_sequence;
  std::vector<Recorded> events;  // those not cut, without gaps
  Sequence last;
  Instant last_at;
  std::map<std::pair<std::string, std::uint64_t>, Document, std::less<>> documents;
  std::map<std::pair<AccountId, std::string>, StoredAnswer, std::less<>> answers;
  bool is_open = false;
};

// Unavailable while another journal is open on `storage`, which must outlive this one.
Result<std::unique_ptr<Journal>> open_memory_journal(MemoryStorage& storage);

}  // namespace bmgpu::store
