#include "controld/log_store.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "bmgpu/v1/agent.pb.h"

namespace bmgpu::controld {
namespace {

constexpr NodeId kNode(3);
const LogKey kKey{LeaseId(17), 0, AttemptNumber(1)};

v1::LogAppend lines(std::uint64_t first, std::uint64_t last, bool complete = false) {
  v1::LogAppend append;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    v1::LogLine& line = *append.add_lines();
    line.set_sequence(sequence);
    line.set_text("line " + std::to_string(sequence));
  }
  append.set_complete(complete);
  return append;
}

class LogStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "/log-store-" + std::to_string(getpid()) + "-" +
             testing::UnitTest::GetInstance()->current_test_info()->name();
    reopen();
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void reopen(LogLimits limits = {}) {
    store.reset();
    Result<std::unique_ptr<LogStore>> opened = LogStore::open(folder, limits);
    ASSERT_TRUE(opened.ok());
    store = std::move(*opened);
  }
  std::uint64_t append(const v1::LogAppend& what) {
    const Result<LogStore::Taken> taken = store->append(kKey, kNode, what);
    EXPECT_TRUE(taken.ok());
    EXPECT_TRUE(store->sync());
    return taken->next_sequence;
  }
  v1::LogChunk read(std::uint64_t from) {
    Result<v1::LogChunk> chunk = store->read(kKey, from, 1 << 20);
    EXPECT_TRUE(chunk.ok());
    return *chunk;
  }
  std::string file() const { return folder + "/lease-17.0.1.log"; }

  std::string folder;
  std::unique_ptr<LogStore> store;
};

TEST_F(LogStoreTest, AppendingTwiceChangesNothingAndGapsAreNotTaken) {
  EXPECT_EQ(append(lines(1, 10)), 11U);
  EXPECT_EQ(append(lines(5, 12)), 13U);
  EXPECT_EQ(append(lines(20, 30)), 13U);
  EXPECT_EQ(*store->lines(kKey), 12U);
}

TEST_F(LogStoreTest, ReadsFromAnywhere) {
  append(lines(1, 1000, true));
  for (const std::uint64_t from : {1U, 2U, 128U, 129U, 500U, 1000U}) {
    const v1::LogChunk chunk = read(from);
    ASSERT_EQ(static_cast<std::uint64_t>(chunk.lines_size()), 1001 - from);
    EXPECT_EQ(chunk.lines(0).text(), "line " + std::to_string(from));
    EXPECT_TRUE(chunk.complete());
  }
  EXPECT_TRUE(read(1001).complete());
  EXPECT_FALSE(store->read(kKey, 1, 100)->complete());
}

TEST_F(LogStoreTest, LinesOutliveARestartAndATornEndIsCutOff) {
  append(lines(1, 300));
  const auto whole = std::filesystem::file_size(file());
  for (std::uintmax_t cut = 1; cut < 20; ++cut) {
    append(lines(301, 301));
    std::filesystem::resize_file(file(), whole + cut);
    reopen();
    EXPECT_EQ(*store->lines(kKey), 300U) << cut;
    EXPECT_EQ(std::filesystem::file_size(file()), whole);
  }
  append(lines(301, 301, true));
  reopen();
  EXPECT_EQ(read(1).lines_size(), 301);
  EXPECT_TRUE(read(1).complete());
}

TEST_F(LogStoreTest, AnotherNodeCannotWriteIt) {
  append(lines(1, 1));
  EXPECT_FALSE(store->append(kKey, NodeId(4), lines(2, 2)));
  reopen();
  EXPECT_FALSE(store->append(kKey, NodeId(4), lines(2, 2)));
  EXPECT_EQ(*store->lines(kKey), 1U);
}

TEST_F(LogStoreTest, BeyondItsLimitALogSaysSoAndTakesTheRestWithoutKeepingIt) {
  reopen({.attempt_bytes_max = 4096});
  EXPECT_EQ(append(lines(1, 5000)), 5001U);
  EXPECT_EQ(append(lines(5001, 6000, true)), 6001U);
  const v1::LogChunk chunk = read(1);
  EXPECT_LT(chunk.lines_size(), 1000);
  EXPECT_EQ(chunk.lines().rbegin()->stream(), v1::LOG_STREAM_SYSTEM);
  EXPECT_TRUE(chunk.complete());
}

TEST_F(LogStoreTest, TheOldestCompleteLogsGoWhenAllAreTooMuch) {
  reopen({.total_bytes_max = 20'000});
  for (std::uint64_t lease = 1; lease <= 20; ++lease) {
    const LogKey key{LeaseId(lease), 0, AttemptNumber(1)};
    ASSERT_TRUE(store->append(key, kNode, lines(1, 100, true)));
    ASSERT_TRUE(store->sync());
  }
  EXPECT_FALSE(*store->exists({LeaseId(1), 0, AttemptNumber(1)}));
  EXPECT_TRUE(*store->exists({LeaseId(20), 0, AttemptNumber(1)}));
}

TEST_F(LogStoreTest, FewFilesAreOpenAtOnce) {
  reopen({.open_files_max = 4});
  for (std::uint64_t lease = 1; lease <= 50; ++lease) {
    ASSERT_TRUE(store->append({LeaseId(lease), 0, AttemptNumber(1)}, kNode, lines(1, 3)));
  }
  ASSERT_TRUE(store->sync());
  for (std::uint64_t lease = 1; lease <= 50; ++lease) {
    EXPECT_EQ(*store->lines({LeaseId(lease), 0, AttemptNumber(1)}), 3U);
  }
}

}  // namespace
}  // namespace bmgpu::controld
