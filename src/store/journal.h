// The journal: what was decided, in order, durable. append() is durable or has not happened.
//
// One process owns a journal at a time: opening one that another process has open fails with
// Unavailable. All calls come from one thread, the market loop's. An I/O error of the disk stops
// the process (check()): after one, nothing can be promised.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "core/events.h"
#include "store/sync_latency.h"

namespace bmgpu::store {

// What must not live in the journal (commands, environment, names, tokens): kept under
// (kind, id), erasable, written in the same commit as the events it belongs to.
struct Document {
  std::string kind;  // "job", "token", "account", "node", "name", …: [a-z-]{1,32}
  std::uint64_t id = 0;
  AccountId account;  // whose it is: erasing an account erases its documents
  std::string bytes;  // empty = erase
  bool operator==(const Document&) const = default;
};

using RequestHash = std::array<std::uint8_t, 32>;

// How long a stored answer is kept at least; older ones go with the next snapshot.
inline constexpr Duration kAnswerLifetime = hours(7 * 24);

// The answer to a mutation, so that a retry gets it again. A later one under the same account and
// key replaces an earlier one.
struct StoredAnswer {
  AccountId account;
  std::string key;      // the Idempotency-Key
  RequestHash request;  // SHA-256 of method and body
  std::string answer;   // opaque
  Instant at;
  bool operator==(const StoredAnswer&) const = default;
};

struct Batch {
  Instant at;
  std::vector<core::Event> events;
  std::vector<Document> documents;
  std::vector<StoredAnswer> answers;
  bool empty() const { return events.empty() && documents.empty() && answers.empty(); }
};

struct Recorded {
  Sequence sequence;
  Instant at;
  core::Event event;
  bool operator==(const Recorded&) const = default;
};

// What a restart applies to an empty state: snapshot first, then the tail.
struct Loaded {
  Incarnation incarnation;
  std::vector<core::Event> snapshot;
  Sequence snapshot_sequence;  // of the last event that the snapshot holds; none = no snapshot
  std::vector<Recorded> tail;
  Sequence last;  // none = empty journal
};

class Journal {
 public:
  virtual ~Journal() = default;

  // REQUIRES: called before anything else, and later only right after an append() that failed: it
  // then gives what is durable.
  virtual Result<Loaded> load() = 0;

  // Writes everything of `batch` in one durable commit and returns the sequence of its last event
  // (the old last one if it has none). `expected` is the last sequence the caller knows: another
  // value in the journal means a second writer and is DataLoss; nothing is written then.
  virtual Result<Sequence> append(const Batch& batch, Sequence expected) = 0;

  // Keeps `events` as the state at `sequence`; events at or before `cut` ≤ sequence may be dropped.
  // The previous snapshot goes only when this one is durable.
  virtual Result<void> write_snapshot(Sequence sequence, const std::vector<core::Event>& events,
                                      Sequence cut) = 0;

  // Events with a sequence > `after`, at most `limit`, in order; those that a cut dropped are
  // skipped. For the history projection.
  virtual Result<std::vector<Recorded>> read(Sequence after, std::size_t limit) = 0;

  virtual Result<std::optional<StoredAnswer>> find_answer(AccountId account,
                                                          std::string_view key) = 0;
  virtual Result<std::optional<Document>> find_document(std::string_view kind,
                                                        std::uint64_t id) = 0;
  virtual Result<std::vector<Document>> documents(std::string_view kind) = 0;  // by id

  // How long the disk took, for metrics. All zero for a journal without one.
  virtual const SyncLatency& sync_latency() const = 0;
};

}  // namespace bmgpu::store
