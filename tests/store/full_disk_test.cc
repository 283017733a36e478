// A disk without room, made by a limit on the size of files: a clear outcome, nothing half, and it
// goes on when there is room again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "store/child.h"
#include "store/numbered_batches.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

void limit_file_size(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);  // a refused write is what a full disk gives, not a signal
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Fills the disk until two batches in a row find no room (the first may make some by emptying the
// log), then gets room and goes on. Reports the last number before and the last at the end. Another
// status than 0 says which expectation failed.
int fill_and_go_on(const std::string& path, rlim_t room, const Child::Report& report) {
  Result<std::unique_ptr<Journal>> opened = open_sqlite_journal(path);
  if (!opened || !(*opened)->load()) {
    return 1;
  }
  Journal& journal = **opened;
  limit_file_size(room);
  std::uint64_t k = 0;
  for (int refused = 0; refused < 2;) {
    const Result<Sequence> last = journal.append(numbered_batch(k + 1, 5000), sequence_after(k));
    if (last) {
      ++k;
      refused = 0;
      continue;
    }
    ++refused;
    if (last.error().code != ErrorCode::Unavailable ||
        last.error().message.find("full") == std::string::npos) {
      return 2;
    }
    const Result<std::optional<Document>> half = journal.find_document("job", k + 1);
    if (!half || half->has_value()) {
      return 3;
    }
  }
  report(k);
  if (!journal.find_answer(kNumberedAccount, "key-1")) {
    return 4;  // reads go on
  }
  const Result<Loaded> again = journal.load();
  if (!again || again->last != sequence_after(k)) {
    return 6;  // what a market that went read-only starts from
  }
  limit_file_size(RLIM_INFINITY);
  for (const std::uint64_t end = k + 40; k < end; ++k) {
    if (!journal.append(numbered_batch(k + 1, 5000), sequence_after(k))) {
      return 5;
    }
  }
  report(k);
  return 0;
}

class FullDiskTest : public testing::TestWithParam<rlim_t> {};

TEST_P(FullDiskTest, IsAClearOutcomeAndNothingIsHalf) {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  Child child(
      [&](const Child::Report& report) { return fill_and_go_on(path, GetParam(), report); });
  const std::optional<std::uint64_t> when_full = child.next();
  const std::optional<std::uint64_t> at_end = child.next();
  ASSERT_EQ(child.wait(), 0);
  ASSERT_TRUE(at_end.has_value());
  EXPECT_GT(*at_end, *when_full);
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  std::uint64_t durable = 0;
  EXPECT_EQ(mismatch(**journal, *at_end, &durable), "");
  EXPECT_EQ(durable, *at_end);
}

// In the header of a frame, inside a page, at a page's end, and behind some commits.
INSTANTIATE_TEST_SUITE_P(Room, FullDiskTest,
                         testing::Values(60'000, 61'700, 100'032, 300'000, 1'000'001));

}  // namespace
}  // namespace bmgpu::store
