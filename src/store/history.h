// History: what is over, for people and for tools that report. A projection of the journal in a
// database of its own, with a sequence number of its own: it can be thrown away and made again from
// what the journal still holds.
//
// Ended orders leave core's live state when their event is applied there; the projection shows them
// once it has applied the same event. Who needs them in between keeps them until applied() has
// passed.
//
// Thread-safety: each object is used by one thread at a time. A writer and any number of readers of
// one database may be used from different threads at once; a reader sees whole applies only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/money.h"
#include "base/result.h"
#include "base/time.h"
#include "core/types.h"
#include "store/journal.h"

namespace bmgpu::store {

// The most rows that one query returns, whatever was asked.
inline constexpr std::size_t kHistoryRowsMax = 1000;

// One line of the timeline. docs/reference/events.md lists the kinds.
struct HistoryEvent {
  Sequence sequence;
  Instant at;
  std::string kind;     // "lease-granted"
  std::string subject;  // "lease-17", "node-2", "market"
  AccountId account;    // whose it is; none: the market's, for operators
  std::string text;     // one line for people
  bool operator==(const HistoryEvent&) const = default;
};

// An order that is over, with or without a lease.
struct HistoryOrder {
  OrderId order;
  LeaseId lease;  // none: it never got one
  AccountId account;
  std::string gpu;  // model, or the words asked for if it never got a lease
  std::int64_t gpus = 0;
  NodeId node;                         // of rank 0
  std::vector<std::string> gpu_uuids;  // by rank and item
  Instant created;
  Instant start;  // of the lease; as `end` for one without
  Instant end;    // when it was over
  std::optional<Instant> billed_from;
  Duration billed;
  Money quoted;
  Money charged;
  core::EndReason reason = core::EndReason::JobExited;
  std::string detail;
  std::optional<std::int32_t> exit_code;
  AttemptNumber attempt;  // of rank 0; none without a lease
  core::RestartPolicy restart = core::RestartPolicy::HostFailure;
  std::vector<Price> slot_prices;
  std::string currency;
  Sequence ended_sequence;  // of the event that ended it
  bool operator==(const HistoryOrder&) const = default;
};

class HistoryWriter {
 public:
  virtual ~HistoryWriter() = default;

  // The last event that was applied; none for an empty history.
  virtual Sequence applied() const = 0;

  // Makes an empty history know what was live at `sequence`, so that it may begin there.
  // REQUIRES: applied() is none.
  virtual Result<void> start_from(const std::vector<core::Event>& snapshot, Sequence sequence) = 0;

  // Applies events in order, all or none; those at or before applied() are skipped. DataLoss if
  // events between applied() and the first new one are missing.
  virtual Result<void> apply(std::span<const Recorded> events) = 0;

  // Puts what was applied on the disk and returns how far it is there: the journal may be cut up to
  // that event. It stays behind applied() while a reader is at work; ask again at the next
  // snapshot. What is not there can be lost with the machine's power, and is then made again by
  // catch_up().
  virtual Result<Sequence> make_durable() = 0;
};

using HistorySubject = std::variant<std::monostate, OrderId, LeaseId, NodeId, QuoteId>;

struct EventQuery {
  AccountId account = {};       // none: all accounts and the market's own
  HistorySubject subject = {};  // an order and its lease have one timeline; a node's holds its GPUs
  std::optional<Sequence> after = {};  // the first `limit` after it; absent: the newest `limit`
  std::size_t limit = 200;
};

class HistoryReader {
 public:
  virtual ~HistoryReader() = default;

  virtual Result<Sequence> applied() = 0;
  // In order of sequence.
  virtual Result<std::vector<HistoryEvent>> events(const EventQuery& query) = 0;
  // Ended ones, the latest first. Account none: all.
  virtual Result<std::vector<HistoryOrder>> ended_orders(AccountId account, std::size_t limit) = 0;
  // Ended ones only.
  virtual Result<std::optional<HistoryOrder>> find_order(OrderId order) = 0;
  virtual Result<std::optional<HistoryOrder>> find_lease(LeaseId lease) = 0;
};

// Applies everything that `journal` holds and `history` lacks; at start, after load(). An empty
// history whose journal was cut begins at the snapshot. DataLoss if the two do not belong together.
Result<void> catch_up(Journal& journal, const Loaded& loaded, HistoryWriter& history);

}  // namespace bmgpu::store
