#include "controld/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "controld/metrics.h"
#include "store/memory/memory_journal.h"

namespace bmgpu::controld {
namespace {

// A memory journal whose disk can be full.
class FullableJournal final : public store::Journal {
 public:
  explicit FullableJournal(std::unique_ptr<store::Journal> inner) : inner_(std::move(inner)) {}
  Result<store::Loaded> load() override { return inner_->load(); }
  Result<Sequence> append(const store::Batch& batch, Sequence expected) override {
    if (full) {
      return Error{ErrorCode::Unavailable, "the disk is full"};
    }
    ++appends;
    return inner_->append(batch, expected);
  }
  Result<void> write_snapshot(Sequence sequence, const std::vector<core::Event>& events,
                              Sequence cut) override {
    return inner_->write_snapshot(sequence, events, cut);
  }
  Result<std::vector<store::Recorded>> read(Sequence after, std::size_t limit) override {
    return inner_->read(after, limit);
  }
  Result<std::optional<store::StoredAnswer>> find_answer(AccountId account,
                                                         std::string_view key) override {
    return inner_->find_answer(account, key);
  }
  Result<std::optional<store::Document>> find_document(std::string_view kind,
                                                       std::uint64_t id) override {
    return inner_->find_document(kind, id);
  }
  Result<std::vector<store::Document>> documents(std::string_view kind) override {
    return inner_->documents(kind);
  }
  const store::SyncLatency& sync_latency() const override { return inner_->sync_latency(); }

  std::atomic<bool> full{false};
  std::atomic<int> appends{0};

 private:
  std::unique_ptr<store::Journal> inner_;
};

class QuietClient final : public LoopClient {
 public:
  void begin(Turn&) override {}
  void observe(Turn&, const core::Event&) override { ++events; }
  void committed(const Turn&, Sequence) override { ++commits; }
  void reloaded(const core::State&) override { ++reloads; }
  void gap(BootTime) override {}
  Sequence projected() const override { return {}; }

  std::atomic<int> events{0};
  std::atomic<int> commits{0};
  std::atomic<int> reloads{0};
};

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    journal =
        std::make_unique<FullableJournal>(std::move(store::open_memory_journal(storage).value()));
    loaded = std::move(journal->load().value());
    loop = std::make_unique<Loop>(*journal, loaded, LoopOptions{}, inbox, client, metrics, log);
  }
  void run() {
    thread = std::thread([this] { loop->run(); });
  }
  void TearDown() override {
    inbox.close();
    if (thread.joinable()) {
      thread.join();
    }
  }
  // Runs `work` in a turn; whether the turn became durable.
  Result<void> in_turn(const std::function<void(Turn&)>& work) {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<void>> outcome;
    inbox.post_always([&](Turn& turn) {
      work(turn);
      turn.after_commit([&](const Result<void>& durable) {
        const std::lock_guard lock(mutex);
        outcome = durable;
        changed.notify_all();
      });
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return outcome.has_value(); });
    return *outcome;
  }
  static void set_policy(Turn& turn, std::int64_t price) {
    core::MarketPolicy policy;
    policy.base_default_micros_per_gpu_hour = price;
    turn.execute(core::SetPolicy{policy});
  }
  std::int64_t price() {
    std::int64_t found = 0;
    const Result<void> seen =
        in_turn([&](Turn& turn) { found = turn.state().policy.base_default_micros_per_gpu_hour; });
    EXPECT_TRUE(seen);
    return found;
  }

  store::MemoryStorage storage;
  std::unique_ptr<FullableJournal> journal;
  store::Loaded loaded;
  Inbox inbox{1000};
  QuietClient client;
  Metrics metrics{"test"};
  wire::Log log{{wire::LogLevel::Off, wire::LogFormat::Text, ""}};
  std::unique_ptr<Loop> loop;
  std::thread thread;
};

TEST_F(LoopTest, AllThatWaitsIsOneCommit) {
  int answered = 0;
  for (int i = 1; i <= 50; ++i) {
    inbox.post_always([&, i](Turn& turn) {
      set_policy(turn, i * 1000);
      turn.after_commit([&](const Result<void>& durable) {
        EXPECT_TRUE(durable);
        EXPECT_EQ(journal->appends, 1);  // durable before anybody hears of it
        ++answered;
      });
    });
  }
  inbox.close();
  loop->run();
  EXPECT_EQ(answered, 50);
  EXPECT_EQ(journal->appends, 1);
  EXPECT_EQ(loop->last(), Sequence(static_cast<std::uint64_t>(client.events)));
}

TEST_F(LoopTest, AFailedWriteHasNotHappenedAndTheMarketGoesOnReadOnly) {
  run();
  ASSERT_TRUE(in_turn([](Turn& turn) { set_policy(turn, 1000); }));
  journal->full = true;
  const Result<void> failed = in_turn([](Turn& turn) { set_policy(turn, 2000); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::Unavailable);
  EXPECT_FALSE(loop->writable());
  EXPECT_EQ(price(), 1000);
  EXPECT_TRUE(in_turn([](Turn& turn) { EXPECT_FALSE(turn.writable()); }));
  journal->full = false;
  while (!loop->writable()) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(in_turn([](Turn& turn) { set_policy(turn, 3000); }));
  EXPECT_GE(client.reloads, 2);  // after a turn: the loop is done with it
  EXPECT_EQ(price(), 3000);
}

TEST_F(LoopTest, WhatIsReplayedIsWhatWas) {
  inbox.post_always([](Turn& turn) { set_policy(turn, 5000); });
  inbox.close();
  loop->run();
  const std::uint64_t before = core::digest(loop->state());
  EXPECT_EQ(core::digest(replay(*journal->load())), before);
  ASSERT_TRUE(loop->checkpoint());
  const Result<store::Loaded> again = journal->load();
  EXPECT_EQ(again->snapshot_sequence, loop->last());
  EXPECT_EQ(core::digest(replay(*again)), before);
}

}  // namespace
}  // namespace bmgpu::controld
