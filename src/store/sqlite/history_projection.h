// Turns events into rows of the history. Private to src/store/sqlite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/journal.h"
#include "store/sqlite/rows.h"

namespace bmgpu::store {

class HistoryProjection {
 public:
  explicit HistoryProjection(Database& database) : database_(database) {}

  // Prepares the statements and reads the currency in force.
  Result<void> prepare();

  // REQUIRES: inside a transaction. The state that later events refer to …
  Result<void> project(const Recorded& recorded);
  // … and the line of the timeline. After project() of the same event.
  Result<void> note(const Recorded& recorded);

 private:
  // What a row of the timeline belongs to.
  struct Owners {
    AccountId account;
    std::optional<std::uint64_t> order;
    std::optional<std::uint64_t> node;
    std::optional<std::uint64_t> quote;
  };
  Result<Owners> owners(const core::Event& event);
  Result<Owners> owners_of_lease(LeaseId lease);
  Result<Owners> owners_of_node(NodeId node);
  Result<Owners> owners_of_gpu(GpuId gpu);
  Result<Owners> owners_of_quote(QuoteId quote);

  Result<void> on(const core::PolicySet& event);
  Result<void> on(const core::ClassDefined& event);
  Result<void> on(const core::NodeRegistered& event);
  Result<void> on(const core::OrderQueued& event);
  Result<void> on(const core::OrderClosed& event, const Recorded& recorded);
  Result<void> on(const core::LeaseGranted& event, const Recorded& recorded);
  Result<void> on(const core::LeaseStarted& event);
  Result<void> on(const core::LeaseMoved& event);
  Result<void> on(const core::JobGiven& event);
  Result<void> on(const core::LeaseExtended& event);
  Result<void> on(const core::LeaseEnded& event, const Recorded& recorded);

  Result<std::string> model_of(ClassId gpu_class);
  Result<std::string> uuids_of(const std::vector<core::RankPlacement>& ranks);
  Result<void> note_attempt(LeaseId lease, const std::vector<core::Attempt>& attempts);

  Database& database_;
  std::string currency_;
  Statement set_currency_, insert_class_, insert_node_, insert_gpu_;
  Statement select_class_, select_gpu_, select_node_, select_lease_, select_quote_;
  Statement insert_queued_, close_order_, insert_lease_, extend_lease_, end_lease_;
  Statement start_lease_, move_lease_;
  Statement insert_event_;
};

}  // namespace bmgpu::store
