// Orders as tenants know them: what core decides, with the job's document, its progress and, once
// it is over, its last view.
//
// The document "job" of an order holds all that its node needs; once the order is over, only the
// names for people stay. Ended orders are history; what history does not show yet is kept here.
// Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/server.h"
#include "controld/blob_ledger.h"
#include "controld/directory.h"
#include "controld/log_store.h"
#include "controld/turn.h"
#include "core/views.h"
#include "store/history.h"
#include "store/journal.h"
#include "wire/encoding.h"

namespace bmgpu::v1 {
class JobRecord;
class JobSpec;
class Order;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

class LogService;

class Orders {
 public:
  Orders(const Directory& directory, store::Journal& journal, store::HistoryReader& history,
         LogService& logs, std::uint64_t job_bytes_per_account_max);
  ~Orders();

  // What the journal holds beside `state`. Watchers stay.
  Result<void> load(const core::State& state);

  // Right before an event is applied.
  void observe(Turn& turn, const core::Event& event);

  // Whether the account's live jobs leave room for another one.
  Result<void> check_room(AccountId account, const v1::JobSpec& job) const;
  // The files of all jobs of live orders.
  std::vector<LiveBlob> live_blobs(const core::State& state) const;

  // Keeps the job of an order that was just placed.
  void keep_job(Turn& turn, OrderId order, AccountId tenant, v1::JobRecord job);
  const v1::JobRecord* job(OrderId order) const;

  void set_progress(Turn& turn, OrderId order, std::string progress);

  // The order behind an order or lease id, if the caller may see it; else NotFound.
  Result<OrderId> resolve(const core::State& state, const api::Identity& caller,
                          std::string_view id) const;
  // REQUIRES: resolve() gave it.
  Result<v1::Order> view(const core::State& state, OrderId order, Instant now) const;
  // Newest first; ended ones only with `all`.
  Result<std::vector<v1::Order>> list(const core::State& state, const api::Identity& caller,
                                      bool all, std::size_t limit, Instant now) const;

  // Sends the view now and at every change; ends after the last one.
  void watch(OrderId order, wire::Encoding encoding, std::shared_ptr<api::Stream> stream,
             const core::State& state, Instant now);
  // Calls `use` once: with the log of the order's lease, or with nothing if it never gets one.
  void when_leased(OrderId order, const core::State& state,
                   std::function<void(std::optional<LogKey>)> use);

  // After the commit, which ended at `last`: tells who watches.
  void committed(const Turn& turn, Sequence last);
  // History shows everything up to `applied`.
  void projected(Sequence applied);

 private:
  struct Watcher;
  struct Recent;  // an order that is over, as long as history may not show it yet

  void ended(Turn& turn, OrderId order, v1::Order view);
  void add_job(OrderId order, AccountId tenant, v1::JobRecord job);
  void expect_log(Turn& turn, const core::Lease& lease, const std::vector<core::Attempt>& attempts);
  void no_log(Turn& turn, OrderId order);
  bool is_over(const core::State& state, OrderId order) const;
  Result<std::optional<v1::Order>> ended_order(OrderId order) const;
  void add_ended(std::vector<v1::Order>& orders, AccountId account, std::size_t limit) const;
  void add_names(v1::Order& order, OrderId id) const;
  static void send(std::vector<Watcher>& watchers, const v1::Order& view);

  const Directory& directory_;
  store::Journal& journal_;
  store::HistoryReader& history_;
  LogService& logs_;
  const std::uint64_t job_bytes_per_account_max_;
  std::map<OrderId, std::unique_ptr<v1::JobRecord>> jobs_;  // of live orders
  std::map<AccountId, std::uint64_t> job_bytes_;            // of them
  std::map<OrderId, std::string> progress_;
  std::map<OrderId, Recent> recent_;
  std::map<OrderId, std::vector<Watcher>> watchers_;
  std::multimap<OrderId, std::function<void(std::optional<LogKey>)>> lease_waiters_;
  BootTime last_keep_alive_{};
};

}  // namespace bmgpu::controld
