#include "controld/blob_ledger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "controld/clock.h"

namespace bmgpu::controld {
namespace {

namespace fs = std::filesystem;

constexpr AccountId kAlice{1};
constexpr AccountId kBob{2};

class BlobLedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / ("blobs-" + name + std::to_string(getpid()));
    fs::create_directories(folder_ / "tmp");
  }
  void TearDown() override { fs::remove_all(folder_); }

  BlobLedger open(BlobLimits limits = {}) { return BlobLedger(folder_, limits); }

  Result<void> upload(BlobLedger& ledger, AccountId account, const std::string& name,
                      std::size_t bytes) {
    const fs::path temporary = folder_ / "tmp" / name;
    Result<void> done = ledger.begin(account);
    if (!done) {
      return done;
    }
    std::uint64_t counted = 0;
    done = ledger.grow(account, bytes);
    if (done) {
      counted = bytes;
      std::ofstream(temporary) << std::string(bytes, 'x');
      done = ledger.keep(account, name, bytes, [&]() -> Result<void> {
        std::error_code error;
        fs::rename(temporary, folder_ / name, error);
        return error ? Result<void>(Error{ErrorCode::Unavailable, error.message()})
                     : Result<void>();
      });
    }
    if (!done) {
      ledger.drop(account, counted);
    }
    return done;
  }

  void age(const fs::path& file) {
    const auto long_ago = fs::file_time_type::clock::now() - BlobLimits().kept;
    fs::last_write_time(folder_ / file, long_ago - std::chrono::hours(1));
  }
  bool there(const fs::path& file) const { return fs::exists(folder_ / file); }

  const Instant now_ = wall_now();
  fs::path folder_;
};

using Use = BlobLedger::Use;

TEST_F(BlobLedgerTest, CountsByAccountAndEachFileOnce) {
  BlobLedger ledger = open();
  EXPECT_TRUE(upload(ledger, kAlice, "a", 10));
  EXPECT_TRUE(upload(ledger, kAlice, "a", 10));
  EXPECT_TRUE(upload(ledger, kBob, "a", 10));
  EXPECT_TRUE(upload(ledger, kBob, "b", 5));
  EXPECT_EQ(ledger.use(kAlice), (Use{1, 10}));
  EXPECT_EQ(ledger.use(kBob), (Use{2, 15}));
}

TEST_F(BlobLedgerTest, RefusesWhatIsBeyondTheLimitsAndCountsNothingOfIt) {
  BlobLimits limits;
  limits.files_per_account_max = 2;
  limits.bytes_per_account_max = 20;
  BlobLedger ledger = open(limits);
  ASSERT_TRUE(upload(ledger, kAlice, "a", 15));
  const Result<void> large = upload(ledger, kAlice, "b", 6);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(large.error().message.find("limits.blob_bytes_per_account_max"), std::string::npos)
      << large.error().message;
  EXPECT_EQ(ledger.use(kAlice), (Use{1, 15}));
  EXPECT_FALSE(ledger.touch(kAlice, "b"));
  ASSERT_TRUE(upload(ledger, kAlice, "b", 5));
  const Result<void> third = upload(ledger, kAlice, "c", 0);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(third.error().message.find("limits.blobs_per_account_max"), std::string::npos);
  EXPECT_EQ(ledger.use(kAlice), (Use{2, 20}));
  EXPECT_TRUE(upload(ledger, kBob, "c", 20));  // another account has its own
}

TEST_F(BlobLedgerTest, AnotherAccountsFileIsNotOnes) {
  BlobLedger ledger = open();
  ASSERT_TRUE(upload(ledger, kAlice, "a", 10));
  EXPECT_FALSE(ledger.touch(kBob, "a"));
  EXPECT_FALSE(ledger.touch(kAlice, "absent"));
  EXPECT_TRUE(ledger.touch(kAlice, "a"));
  ASSERT_TRUE(upload(ledger, kBob, "a", 10));
  EXPECT_TRUE(ledger.touch(kBob, "a"));
}

TEST_F(BlobLedgerTest, KnowsTheSameAfterARestart) {
  {
    BlobLedger ledger = open();
    ASSERT_TRUE(upload(ledger, kAlice, "a", 10));
    ASSERT_TRUE(upload(ledger, kBob, "a", 10));
    ASSERT_TRUE(upload(ledger, kBob, "b", 5));
    ASSERT_TRUE(ledger.begin(kAlice));  // killed in the middle of an upload
    ASSERT_TRUE(ledger.grow(kAlice, 1000));
  }
  std::ofstream(folder_ / "accounts/1/claimed");  // killed before the file got its name
  BlobLedger ledger = open();
  EXPECT_EQ(ledger.use(kAlice), (Use{1, 10}));
  EXPECT_EQ(ledger.use(kBob), (Use{2, 15}));
  EXPECT_FALSE(there("accounts/1/claimed"));
  EXPECT_TRUE(there("accounts/1/a"));
}

TEST_F(BlobLedgerTest, AFileThatCannotBeNamedIsNobodys) {
  BlobLedger ledger = open();
  ASSERT_TRUE(ledger.begin(kAlice));
  ASSERT_TRUE(ledger.grow(kAlice, 10));
  EXPECT_FALSE(ledger.keep(kAlice, "a", 10, []() -> Result<void> {
    return Error{ErrorCode::ResourceExhausted, "full"};
  }));
  ledger.drop(kAlice, 10);
  EXPECT_EQ(ledger.use(kAlice), Use());
  EXPECT_FALSE(there("accounts/1/a"));
  EXPECT_TRUE(upload(ledger, kAlice, "a", 10));
  EXPECT_TRUE(there("accounts/1/a"));
}

TEST_F(BlobLedgerTest, SweepsWhatNobodyHasWantedForLong) {
  BlobLedger ledger = open();
  for (const char* name : {"old", "live", "touched", "fresh"}) {
    ASSERT_TRUE(upload(ledger, kAlice, name, 10));
  }
  for (const char* name : {"old", "live", "touched"}) {
    age(name);
    age(fs::path("accounts/1") / name);
  }
  EXPECT_TRUE(ledger.touch(kAlice, "touched"));
  EXPECT_EQ(ledger.sweep({{kAlice, "live"}}, now_), 1U);
  EXPECT_FALSE(there("old"));
  EXPECT_FALSE(there("accounts/1/old"));
  for (const char* name : {"live", "touched", "fresh"}) {
    EXPECT_TRUE(there(name)) << name;
    EXPECT_TRUE(there(fs::path("accounts/1") / name)) << name;
  }
  EXPECT_TRUE(there("tmp"));
  EXPECT_EQ(ledger.use(kAlice), (Use{3, 30}));
}

TEST_F(BlobLedgerTest, ASharedFileStaysUntilItsLastAccountNeedsItNoMore) {
  BlobLedger ledger = open();
  ASSERT_TRUE(upload(ledger, kAlice, "a", 10));
  ASSERT_TRUE(upload(ledger, kBob, "a", 10));
  for (const char* file : {"a", "accounts/1/a", "accounts/2/a"}) {
    age(file);
  }
  EXPECT_EQ(ledger.sweep({{kBob, "a"}}, now_), 0U);
  EXPECT_TRUE(there("a"));
  EXPECT_EQ(ledger.use(kAlice), Use());
  EXPECT_EQ(ledger.use(kBob), (Use{1, 10}));
  for (const char* file : {"a", "accounts/2/a"}) {
    age(file);
  }
  EXPECT_EQ(ledger.sweep({}, now_), 1U);
  EXPECT_FALSE(there("a"));
  EXPECT_EQ(ledger.use(kBob), Use());
}

}  // namespace
}  // namespace bmgpu::controld
