// kill -9 in mid load, at points that nobody chose: what was acknowledged is there, and nothing
// half.
#include <gtest/gtest.h>
#include <signal.h>

#include "store/child.h"
#include "store/numbered_batches.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

// Every few batches a large document, so that the log is moved into the database often, and now and
// then a snapshot with a cut.
std::size_t document_bytes(std::uint64_t k) { return k % 4 == 0 ? 400'000 : 300; }

// Appends batches after number `k` and reports each when it is durable. Returns only on failure.
int append_for_ever(const std::string& path, std::uint64_t k, const Child::Report& report) {
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  if (!journal || !(*journal)->load()) {
    return 1;
  }
  for (;; ++k) {
    if (!(*journal)->append(numbered_batch(k + 1, document_bytes(k + 1)), sequence_after(k))) {
      return 2;
    }
    report(k + 1);
    if (k % 7 == 0) {
      const Sequence last = sequence_after(k + 1);
      if (!(*journal)->write_snapshot(last, EventMaker(k).list(100), sequence_after(k / 2))) {
        return 3;
      }
    }
  }
}

TEST(CrashTest, NothingAcknowledgedIsLostAndNothingIsHalf) {
  constexpr int kKills = 60;
  Prng prng(20261130);
  TempDir dir;
  const std::string path = dir.file("journal.db");
  std::uint64_t durable = 0;
  int went_on = 0;  // kills that hit a batch which was durable but not yet reported
  for (int kill = 0; kill < kKills; ++kill) {
    std::uint64_t acknowledged = durable;
    {
      Child child(
          [&](const Child::Report& report) { return append_for_ever(path, durable, report); });
      for (std::uint64_t left = prng.below(6); left > 0; --left) {
        const std::optional<std::uint64_t> number = child.next();
        ASSERT_TRUE(number.has_value()) << "the child failed with status " << child.wait();
        acknowledged = *number;
      }
      // Some more work of the child, less than a commit: the kill falls anywhere in the next one.
      for (std::uint64_t spin = prng.below(2'000'000); spin > 0; --spin) {
        asm volatile("");
      }
      child.kill();
      while (const std::optional<std::uint64_t> number = child.next()) {
        acknowledged = *number;
      }
      ASSERT_EQ(child.wait(), -SIGKILL);
    }
    Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    ASSERT_EQ(mismatch(**journal, acknowledged, &durable), "") << "after kill " << kill;
    ASSERT_LE(durable, acknowledged + 1);
    went_on += durable > acknowledged ? 1 : 0;
  }
  EXPECT_GT(durable, 50U);
  RecordProperty("kills_between_commit_and_report", went_on);
}

TEST(CrashTest, AnotherProcessIsKeptOutUntilTheOwnerIsGone) {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  Child owner([&](const Child::Report& report) { return append_for_ever(path, 0, report); });
  ASSERT_EQ(owner.next(), 1U);
  const Result<std::unique_ptr<Journal>> second = open_sqlite_journal(path);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_NE(second.error().message.find("another process"), std::string::npos)
      << second.error().message;
  owner.kill();
  ASSERT_EQ(owner.wait(), -SIGKILL);
  Result<std::unique_ptr<Journal>> next = open_sqlite_journal(path);
  ASSERT_TRUE(next.ok()) << next.error().message;
  std::uint64_t durable = 0;
  EXPECT_EQ(mismatch(**next, 1, &durable), "");
}

}  // namespace
}  // namespace bmgpu::store
