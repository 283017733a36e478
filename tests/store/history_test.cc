#include "store/history.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/memory/memory_journal.h"
#include "store/sqlite/sqlite_history.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

constexpr AccountId kTenant{3};
constexpr AccountId kOwner{4};
constexpr Instant kStart{1'796'000'400'000};  // 2026-11-30T01:00:00Z

core::Lease lease_of(OrderId order, LeaseId id) {
  core::Lease lease;
  lease.id = id;
  lease.order = order;
  lease.tenant = kTenant;
  lease.gpu_class = ClassId(1);
  lease.gpus = 2;
  lease.start = kStart;
  lease.end = kStart + hours(2);
  lease.slot_prices = {Price(500'000), Price(450'000)};
  core::RankPlacement rank;
  rank.node = NodeId(2);
  rank.items = {{GpuId(11), 1000, 81920}, {GpuId(12), 1000, 81920}};
  lease.allocations = {{lease.start, lease.end, {rank}}};
  lease.attempts = {{AttemptNumber(1), Incarnation(1), core::AttemptState::Assigned}};
  lease.restart = core::RestartPolicy::Never;
  lease.quoted = Money(3'500'000);
  lease.placed = kStart;
  return lease;
}

core::OrderQueued queued(OrderId id) {
  core::Order order;
  order.id = id;
  order.tenant = kTenant;
  order.resources.gpus = 2;
  order.resources.gpu_words = "a100";
  order.duration = minutes(90);
  order.placed = kStart - minutes(5);
  order.restart = core::RestartPolicy::Never;
  return {order};
}

core::LeaseEnded ended(OrderId order, LeaseId lease) {
  return {lease,
          order,
          kTenant,
          core::EndReason::JobExited,
          kStart + hours(3),
          kStart + seconds(10),
          hours(1) + seconds(5),
          Money(1'250'000),
          Money(5'000'000),
          0,
          "line\nbreak"};
}

std::vector<core::Event> market() {
  core::PolicySet policy;
  policy.policy.version = PolicyVersion(1);
  policy.policy.currency = "EUR";
  return {policy,
          core::ClassDefined{ClassId(1), {"NVIDIA A100 80GB PCIe", 81920, core::Form::Pcie}},
          core::NodeRegistered{
              NodeId(2),
              kOwner,
              SiteId(1),
              {64'000, 512'000, 900'000},
              {{GpuId(11), ClassId(1), "GPU-aaaa"}, {GpuId(12), ClassId(1), "GPU-bbbb"}},
              core::Driver::Simulated,
              Price(0)}};
}

std::vector<core::Event> life_of(OrderId order, LeaseId lease) {
  return {queued(order),
          core::LeaseGranted{lease_of(order, lease)},
          core::LeaseRunning{lease, 0, kStart + seconds(10)},
          core::LeaseExtended{lease,
                              kStart + hours(3),
                              {Price(500'000), Price(450'000), Price(400'000)},
                              PolicyVersion(1),
                              Money(5'000'000),
                              Price(0)},
          core::LeaseEnding{lease, core::EndReason::JobExited, kStart + hours(3), "", 0},
          ended(order, lease)};
}

class HistoryTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }

  void reopen() {
    reader_.reset();
    writer_.reset();
    Result<std::unique_ptr<HistoryWriter>> writer = open_history_writer(dir_.file("history.db"));
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    writer_ = std::move(*writer);
    Result<std::unique_ptr<HistoryReader>> reader = open_history_reader(dir_.file("history.db"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    reader_ = std::move(*reader);
  }

  // As the next events, all at one time.
  void apply(const std::vector<core::Event>& events, Instant at = kStart) {
    std::vector<Recorded> recorded;
    std::uint64_t next = writer_->applied().value() + 1;
    for (const core::Event& event : events) {
      recorded.push_back({Sequence(next++), at, event});
    }
    const Result<void> applied = writer_->apply(recorded);
    ASSERT_TRUE(applied.ok()) << applied.error().message;
  }

  std::vector<HistoryEvent> events(const EventQuery& query) {
    Result<std::vector<HistoryEvent>> found = reader_->events(query);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::vector<HistoryEvent>();
  }

  std::vector<std::string> kinds(const EventQuery& query) {
    std::vector<std::string> names;
    for (const HistoryEvent& event : events(query)) {
      names.push_back(event.subject + " " + event.kind);
    }
    return names;
  }

  TempDir dir_;
  std::unique_ptr<HistoryWriter> writer_;
  std::unique_ptr<HistoryReader> reader_;
};

TEST_F(HistoryTest, KeepsEverythingOfAnEndedLease) {
  apply(market());
  apply(life_of(OrderId(9), LeaseId(10)));
  HistoryOrder expected;
  expected.order = OrderId(9);
  expected.lease = LeaseId(10);
  expected.account = kTenant;
  expected.gpu = "NVIDIA A100 80GB PCIe";
  expected.gpus = 2;
  expected.node = NodeId(2);
  expected.gpu_uuids = {"GPU-aaaa", "GPU-bbbb"};
  expected.created = kStart - minutes(5);
  expected.start = kStart;
  expected.end = kStart + hours(3);
  expected.billed_from = kStart + seconds(10);
  expected.billed = hours(1) + seconds(5);
  expected.quoted = Money(5'000'000);
  expected.charged = Money(1'250'000);
  expected.reason = core::EndReason::JobExited;
  expected.detail = "line\nbreak";
  expected.exit_code = 0;
  expected.attempt = AttemptNumber(1);
  expected.restart = core::RestartPolicy::Never;
  expected.slot_prices = {Price(500'000), Price(450'000), Price(400'000)};
  expected.currency = "EUR";
  expected.ended_sequence = Sequence(9);
  EXPECT_EQ(reader_->find_order(OrderId(9)).value(), expected);
  EXPECT_EQ(reader_->find_lease(LeaseId(10)).value(), expected);
  reopen();
  EXPECT_EQ(reader_->find_order(OrderId(9)).value(), expected);
}

TEST_F(HistoryTest, ShowsAnOrderOnlyOnceItHasEnded) {
  apply(market());
  std::vector<core::Event> life = life_of(OrderId(9), LeaseId(10));
  const core::Event last = life.back();
  life.pop_back();
  apply(life);
  EXPECT_EQ(reader_->find_order(OrderId(9)).value(), std::nullopt);
  EXPECT_EQ(reader_->find_lease(LeaseId(10)).value(), std::nullopt);
  EXPECT_TRUE(reader_->ended_orders(AccountId(), 10).value().empty());
  apply({last});
  EXPECT_NE(reader_->find_order(OrderId(9)).value(), std::nullopt);
  EXPECT_EQ(reader_->ended_orders(AccountId(), 10).value().size(), 1U);
}

TEST_F(HistoryTest, KeepsAnOrderThatNeverGotALease) {
  apply(market());
  apply({queued(OrderId(5)), core::OrderClosed{OrderId(5), kTenant, core::EndReason::Cancelled}},
        kStart + minutes(7));
  const std::optional<HistoryOrder> order = reader_->find_order(OrderId(5)).value();
  ASSERT_TRUE(order.has_value());
  EXPECT_TRUE(order->lease.is_none());
  EXPECT_EQ(order->gpu, "a100");
  EXPECT_EQ(order->gpus, 2);
  EXPECT_EQ(order->created, kStart - minutes(5));
  EXPECT_EQ(order->end, kStart + minutes(7));
  EXPECT_EQ(order->reason, core::EndReason::Cancelled);
  EXPECT_EQ(order->charged, Money(0));
  EXPECT_EQ(reader_->find_lease(LeaseId()).value(), std::nullopt);
}

TEST_F(HistoryTest, WritesOneLinePerEvent) {
  apply(market());
  apply(life_of(OrderId(9), LeaseId(10)));
  const auto line = [](std::uint64_t sequence, const char* kind, const char* subject,
                       AccountId account, const char* text) {
    return HistoryEvent{Sequence(sequence), kStart, kind, subject, account, text};
  };
  const std::vector<HistoryEvent> expected = {
      line(1, "policy-set", "market", AccountId(), "market policy 1 applies"),
      line(2, "class-defined", "class-1", AccountId(),
           "GPU class NVIDIA A100 80GB PCIe, 81920 MiB"),
      line(3, "node-registered", "node-2", kOwner, "registered with 2 GPUs, simulated driver"),
      line(4, "order-queued", "order-9", kTenant, "waits for 2 GPUs (a100) for 1h 30m"),
      line(5, "lease-granted", "lease-10", kTenant,
           "2 GPUs on node-2 until 2026-11-30T03:00:00Z; at most 3.50 EUR"),
      line(6, "lease-running", "lease-10", kTenant, "running since 2026-11-30T01:00:10Z"),
      line(7, "lease-extended", "lease-10", kTenant,
           "extended until 2026-11-30T04:00:00Z; at most 5.00 EUR"),
      line(8, "lease-ending", "lease-10", kTenant, "ending: job-exited, exit code 0"),
      line(9, "lease-ended", "lease-10", kTenant,
           "ended: job-exited, exit code 0 (line break); 1h 5s billed, 1.25 EUR"),
  };
  EXPECT_EQ(events({}), expected);
}

TEST_F(HistoryTest, FiltersByAccountSubjectAndPosition) {
  apply(market());
  apply(life_of(OrderId(20), LeaseId(21)));
  apply({core::OrderQueued{queued(OrderId(30))},
         core::GpuStateChanged{GpuId(12), core::GpuState::Free},
         core::NodeReadyChanged{NodeId(2), true}, core::OrdersReviewed{kStart}});
  core::QuoteIssued quote;
  quote.quote.id = QuoteId(40);
  quote.quote.tenant = kTenant;
  apply({quote, core::QuoteClosed{QuoteId(40)}});

  const std::vector<std::string> of_order = {"order-20 order-queued",  "lease-21 lease-granted",
                                             "lease-21 lease-running", "lease-21 lease-extended",
                                             "lease-21 lease-ending",  "lease-21 lease-ended"};
  EXPECT_EQ(kinds({.subject = OrderId(20)}), of_order);
  EXPECT_EQ(kinds({.subject = LeaseId(21)}), of_order);
  EXPECT_EQ(kinds({.account = kOwner, .subject = LeaseId(21)}), std::vector<std::string>());
  EXPECT_EQ(kinds({.subject = NodeId(2)}),
            (std::vector<std::string>{"node-2 node-registered", "gpu-12 gpu-state-changed",
                                      "node-2 node-ready-changed"}));
  EXPECT_EQ(kinds({.account = kOwner}), kinds({.subject = NodeId(2)}));
  EXPECT_EQ(kinds({.account = kTenant, .subject = QuoteId(40)}),
            (std::vector<std::string>{"quote-40 quote-issued", "quote-40 quote-closed"}));
  EXPECT_EQ(events({.account = kTenant}).size(), 9U);
  EXPECT_EQ(events({}).size(), 14U);  // bookkeeping is left out
  EXPECT_EQ(kinds({.subject = OrderId(20), .after = Sequence(5), .limit = 2}),
            std::vector<std::string>(of_order.begin() + 2, of_order.begin() + 4));
  EXPECT_TRUE(events({.subject = OrderId(99)}).empty());
}

TEST_F(HistoryTest, WithoutAPositionGivesTheNewestInOrder) {
  apply(market());
  apply(life_of(OrderId(20), LeaseId(21)));
  EXPECT_EQ(kinds({.subject = OrderId(20), .limit = 2}),
            (std::vector<std::string>{"lease-21 lease-ending", "lease-21 lease-ended"}));
  EXPECT_EQ(kinds({.limit = 1}), std::vector<std::string>{"lease-21 lease-ended"});
  EXPECT_EQ(kinds({.after = Sequence(), .limit = 1}), std::vector<std::string>{"market policy-set"});
  EXPECT_EQ(kinds({.after = Sequence(8), .limit = 5}),
            std::vector<std::string>{"lease-21 lease-ended"});
}

TEST_F(HistoryTest, ListsEndedOrdersLatestFirst) {
  apply(market());
  for (std::uint64_t id = 100; id < 110; id += 2) {
    apply(life_of(OrderId(id), LeaseId(id + 1)));
  }
  const auto ids = [&](AccountId account, std::size_t limit) {
    std::vector<std::uint64_t> found;
    const std::vector<HistoryOrder> ended_orders = reader_->ended_orders(account, limit).value();
    for (const HistoryOrder& order : ended_orders) {
      found.push_back(order.order.value());
    }
    return found;
  };
  EXPECT_EQ(ids(AccountId(), 3), (std::vector<std::uint64_t>{108, 106, 104}));
  EXPECT_EQ(ids(kTenant, 100), (std::vector<std::uint64_t>{108, 106, 104, 102, 100}));
  EXPECT_TRUE(ids(kOwner, 100).empty());
}

TEST_F(HistoryTest, ApplyingAgainChangesNothing) {
  std::vector<Recorded> all;
  for (const core::Event& event : market()) {
    all.push_back({Sequence(all.size() + 1), kStart, event});
  }
  for (const core::Event& event : life_of(OrderId(9), LeaseId(10))) {
    all.push_back({Sequence(all.size() + 1), kStart, event});
  }
  const std::span<const Recorded> span(all);
  ASSERT_TRUE(writer_->apply(span.first(6)).ok());
  ASSERT_TRUE(writer_->apply(span.first(3)).ok());
  ASSERT_TRUE(writer_->apply(span.subspan(2)).ok());  // overlaps
  const std::vector<HistoryEvent> once = events({});
  EXPECT_EQ(once.size(), 9U);
  ASSERT_TRUE(writer_->apply(span).ok());
  reopen();
  ASSERT_TRUE(writer_->apply(span).ok());
  EXPECT_EQ(events({}), once);
  EXPECT_EQ(writer_->applied(), Sequence(9));
  EXPECT_EQ(reader_->applied().value(), Sequence(9));
}

TEST_F(HistoryTest, RefusesAGapAndKeepsNothingOfIt) {
  apply(market());
  const std::vector<Recorded> late = {{Sequence(5), kStart, queued(OrderId(9))}};
  const Result<void> refused = writer_->apply(late);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(writer_->applied(), Sequence(3));
  EXPECT_EQ(events({}).size(), 3U);
}

TEST_F(HistoryTest, DurableUpToWhatWasApplied) {
  apply(market());
  EXPECT_EQ(writer_->make_durable().value(), Sequence(3));
  apply({core::QuoteClosed{QuoteId(1)}});
  EXPECT_EQ(writer_->make_durable().value(), Sequence(4));
}

TEST_F(HistoryTest, CatchesUpWithAJournal) {
  MemoryStorage storage;
  std::unique_ptr<Journal> journal = std::move(open_memory_journal(storage).value());
  ASSERT_TRUE(journal->load().ok());
  Sequence last;
  for (const std::vector<core::Event>& events : {market(), life_of(OrderId(9), LeaseId(10))}) {
    Batch batch;
    batch.at = kStart;
    batch.events = events;
    last = journal->append(batch, last).value();
  }
  const Loaded loaded{Incarnation(1), {}, Sequence(), {}, last};
  ASSERT_TRUE(catch_up(*journal, loaded, *writer_).ok());
  EXPECT_EQ(writer_->applied(), last);
  EXPECT_NE(reader_->find_lease(LeaseId(10)).value(), std::nullopt);
  ASSERT_TRUE(catch_up(*journal, loaded, *writer_).ok());
  EXPECT_EQ(events({}).size(), 9U);

  const Loaded older{Incarnation(1), {}, Sequence(), {}, Sequence(5)};
  const Result<void> ahead = catch_up(*journal, older, *writer_);
  ASSERT_FALSE(ahead.ok());
  EXPECT_EQ(ahead.error().code, ErrorCode::DataLoss);
}

TEST_F(HistoryTest, BeginsAtTheSnapshotOfACutJournal) {
  std::vector<core::Event> state = market();
  state.push_back(core::LeaseGranted{lease_of(OrderId(9), LeaseId(10))});
  MemoryStorage storage;
  storage.snapshot = state;
  storage.snapshot_sequence = Sequence(50);
  storage.events = {{Sequence(51), kStart, ended(OrderId(9), LeaseId(10))}};
  storage.last = Sequence(51);
  std::unique_ptr<Journal> journal = std::move(open_memory_journal(storage).value());
  const Loaded loaded = journal->load().value();
  ASSERT_TRUE(catch_up(*journal, loaded, *writer_).ok());
  const std::optional<HistoryOrder> order = reader_->find_lease(LeaseId(10)).value();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->gpu_uuids, (std::vector<std::string>{"GPU-aaaa", "GPU-bbbb"}));
  EXPECT_EQ(order->created, kStart);
  EXPECT_EQ(order->currency, "EUR");
  EXPECT_EQ(kinds({}), std::vector<std::string>{"lease-10 lease-ended"});
}

TEST_F(HistoryTest, EndOfALeaseItNeverSawIsKept) {
  apply({ended(OrderId(9), LeaseId(10))});
  const std::optional<HistoryOrder> order = reader_->find_order(OrderId(9)).value();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->charged, Money(1'250'000));
  EXPECT_EQ(order->lease, LeaseId(10));
}

TEST_F(HistoryTest, ReadersBesideTheWriterSeeWholeAppliesOnly) {
  constexpr int kApplies = 200;
  apply(market());
  std::thread writing([this] {
    for (int i = 0; i < kApplies; ++i) {
      apply({queued(OrderId(1000 + static_cast<std::uint64_t>(i))),
             core::OrderClosed{OrderId(1000 + static_cast<std::uint64_t>(i)), kTenant,
                               core::EndReason::Expired}});
    }
  });
  std::size_t seen = 0;
  while (seen < 2 * kApplies) {
    const std::vector<HistoryEvent> found = events({.account = kTenant, .limit = 1000});
    EXPECT_EQ(found.size() % 2, 0U);
    EXPECT_GE(found.size(), seen);
    if (found.size() % 2 != 0 || found.size() < seen) {
      break;
    }
    seen = found.size();
  }
  writing.join();
  EXPECT_EQ(seen, 2U * kApplies);
}

TEST(HistoryOpenTest, ReaderNeedsAWriterBefore) {
  TempDir dir;
  const Result<std::unique_ptr<HistoryReader>> reader = open_history_reader(dir.file("none.db"));
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace bmgpu::store
