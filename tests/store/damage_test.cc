// Bytes that changed behind the journal's back: it is refused as damaged, or what it holds is the
// same.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "store/child.h"
#include "store/numbered_batches.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

constexpr std::uint64_t kBatches = 40;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Files of a journal: the database and its log.
struct Files {
  std::string database;
  std::string log;
};

// With everything in the database, as a clean end leaves it.
Files closed_journal() {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  {
    std::unique_ptr<Journal> journal = std::move(open_sqlite_journal(path).value());
    EXPECT_TRUE(journal->load().ok());
    for (std::uint64_t k = 0; k < kBatches; ++k) {
      EXPECT_TRUE(journal->append(numbered_batch(k + 1), sequence_after(k)).ok());
      if (k == 20) {
        EXPECT_TRUE(
            journal->write_snapshot(sequence_after(10), EventMaker(1).list(200), sequence_after(5))
                .ok());
      }
    }
  }
  return {bytes_of(path), bytes_of(path + "-wal")};
}

// With everything in the log, as a crash leaves it.
Files crashed_journal() {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  Child child([&](const Child::Report& report) {
    std::unique_ptr<Journal> journal = std::move(open_sqlite_journal(path).value());
    if (!journal->load()) {
      return 1;
    }
    for (std::uint64_t k = 0; k < kBatches; ++k) {
      if (!journal->append(numbered_batch(k + 1), sequence_after(k))) {
        return 2;
      }
    }
    report(kBatches);
    raise(SIGKILL);
    return 3;
  });
  EXPECT_EQ(child.next(), kBatches);
  EXPECT_EQ(child.wait(), -SIGKILL);
  return {bytes_of(path), bytes_of(path + "-wal")};
}

enum class Verdict { Same, Refused, Different };

// Opens a journal with these bytes. `lost_max`: how many of the last batches may be missing.
Verdict verdict_on(const Files& files, std::uint64_t lost_max, std::string* why) {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  write(path, files.database);
  if (!files.log.empty()) {
    write(path + "-wal", files.log);
  }
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  if (!journal) {
    *why = journal.error().message;
    return Verdict::Refused;
  }
  std::uint64_t found = 0;
  *why = mismatch(**journal, kBatches - lost_max, &found);
  if (why->empty()) {
    return Verdict::Same;
  }
  const bool says_so = why->find("is damaged") != std::string::npos ||
                       why->find("stored events") != std::string::npos;
  return says_so ? Verdict::Refused : Verdict::Different;
}

TEST(DamageTest, UntouchedFilesAreSound) {
  std::string why;
  EXPECT_EQ(verdict_on(closed_journal(), 0, &why), Verdict::Same) << why;
  EXPECT_EQ(verdict_on(crashed_journal(), 0, &why), Verdict::Same) << why;
}

TEST(DamageTest, AFlippedBitOfTheDatabaseNeverChangesWhatItHolds) {
  const Files sound = closed_journal();
  Prng prng(1);
  int refused = 0;
  for (int round = 0; round < 250; ++round) {
    Files damaged = sound;
    const std::uint64_t at = prng.below(damaged.database.size());
    damaged.database[at] = static_cast<char>(damaged.database[at] ^ (1 << prng.below(8)));
    std::string why;
    const Verdict verdict = verdict_on(damaged, 0, &why);
    EXPECT_NE(verdict, Verdict::Different) << "byte " << at << ": " << why;
    refused += verdict == Verdict::Refused ? 1 : 0;
  }
  EXPECT_GT(refused, 50);  // the others hit bytes that hold nothing
}

TEST(DamageTest, AFlippedBitOfTheLogNeverLosesMoreThanALastCommit) {
  const Files sound = crashed_journal();
  ASSERT_GT(sound.log.size(), 100'000U);
  Prng prng(2);
  int refused = 0;
  for (int round = 0; round < 250; ++round) {
    Files damaged = sound;
    const std::uint64_t at = prng.below(damaged.log.size());
    damaged.log[at] = static_cast<char>(damaged.log[at] ^ (1 << prng.below(8)));
    std::string why;
    const Verdict verdict = verdict_on(damaged, 1, &why);
    EXPECT_NE(verdict, Verdict::Different) << "byte " << at << ": " << why;
    refused += verdict == Verdict::Refused ? 1 : 0;
  }
  EXPECT_GT(refused, 200);
}

TEST(DamageTest, ATruncatedDatabaseIsRefused) {
  const Files sound = closed_journal();
  Prng prng(3);
  for (int round = 0; round < 60; ++round) {
    Files damaged = sound;
    damaged.database.resize(1 + prng.below(damaged.database.size() - 1));
    std::string why;
    EXPECT_EQ(verdict_on(damaged, 0, &why), Verdict::Refused) << why;
  }
}

// What a crash may leave: the log ends anywhere in its last commit.
TEST(DamageTest, ATornLastCommitIsNotDamage) {
  const Files sound = crashed_journal();
  for (std::size_t cut = 1; cut < 6000; cut += 997) {
    Files torn = sound;
    torn.log.resize(torn.log.size() - cut);
    std::string why;
    EXPECT_EQ(verdict_on(torn, 1, &why), Verdict::Same) << cut << ": " << why;
  }
}

TEST(DamageTest, SaysWhatItIsAndWhatToDo) {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  write(path, std::string(8192, 'x'));
  const Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().code, ErrorCode::DataLoss);
  EXPECT_NE(journal.error().message.find("restore it from a backup"), std::string::npos)
      << journal.error().message;
  EXPECT_EQ(bytes_of(path), std::string(8192, 'x'));
}

// Evidence is kept: opening a journal whose log is damaged changes neither file.
TEST(DamageTest, LeavesADamagedLogAsItIs) {
  Files damaged = crashed_journal();
  damaged.log[damaged.log.size() / 2] ^= 1;
  TempDir dir;
  const std::string path = dir.file("journal.db");
  write(path, damaged.database);
  write(path + "-wal", damaged.log);
  const Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(bytes_of(path), damaged.database);
  EXPECT_EQ(bytes_of(path + "-wal"), damaged.log);
}

}  // namespace
}  // namespace bmgpu::store
