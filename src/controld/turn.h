// One batch of the market loop: what is decided in it becomes durable in one commit, and only then
// does anybody hear of it.
//
// Not thread-safe: handlers get it on the loop's thread for the time of a call.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "controld/clock.h"
#include "core/core.h"
#include "store/journal.h"

namespace bmgpu::controld {

class Turn {
 public:
  using Observer = std::function<void(Turn&, const core::Event&)>;
  // Told whether the batch is durable. An error: nothing of the turn has happened.
  using AfterCommit = std::function<void(const Result<void>& durable)>;

  // `observer` sees each event right before it is applied: what it ends is still there.
  Turn(core::State& state, core::Stamp stamp, BootTime boot, bool writable, Observer observer);

  Instant now() const { return stamp_.now; }
  BootTime boot() const { return boot_; }
  Incarnation incarnation() const { return stamp_.incarnation; }
  const core::State& state() const { return state_; }

  // False while the journal cannot be written: nothing may be executed or put.
  bool writable() const { return writable_; }

  // Decides and applies. REQUIRES: writable().
  core::Answer execute(const core::Command& command);

  // REQUIRES: writable().
  void put(store::Document document);
  void remember(store::StoredAnswer answer);

  // An answer remembered in this turn, not yet in the journal; valid until the next remember().
  const store::StoredAnswer* remembered(AccountId account, const std::string& key) const;

  void after_commit(AfterCommit action) { after_.push_back(std::move(action)); }

  // Nodes that need their desired set, orders that look different now.
  void sync(NodeId node) { sync_.insert(node); }
  void touch(OrderId order) { touched_.insert(order); }
  const std::set<NodeId>& nodes_to_sync() const { return sync_; }
  const std::set<OrderId>& touched_orders() const { return touched_; }

  const store::Batch& batch() const { return batch_; }
  const std::vector<AfterCommit>& after() const { return after_; }

 private:
  core::State& state_;
  const core::Stamp stamp_;
  const BootTime boot_;
  const bool writable_;
  const Observer observer_;
  store::Batch batch_;
  std::map<std::pair<AccountId, std::string>, std::size_t> answers_;  // → index in batch_.answers
  std::vector<AfterCommit> after_;
  std::set<NodeId> sync_;
  std::set<OrderId> touched_;
};

}  // namespace bmgpu::controld
