// Fails the n-th write, sync or truncation of the file system under SQLite, for n = 0, 1, 2 … until
// the work gets through: each time the process stops, and what was acknowledged is there.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/child.h"
#include "store/numbered_batches.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

constexpr std::uint64_t kBatches = 6;

// The system's file system, but with one operation that fails. One per process: SQLite's interface
// has no other place for it. Installed in children only.
std::uint64_t operations_left = 0;
sqlite3_io_methods failing_methods;
const sqlite3_io_methods* system_methods = nullptr;
int (*system_open)(sqlite3_vfs*, const char*, sqlite3_file*, int, int*) = nullptr;

bool fails_now() { return operations_left-- == 0; }

int on_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  return fails_now() ? SQLITE_IOERR_WRITE : system_methods->xWrite(file, from, size, offset);
}
int on_sync(sqlite3_file* file, int flags) {
  return fails_now() ? SQLITE_IOERR_FSYNC : system_methods->xSync(file, flags);
}
int on_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return fails_now() ? SQLITE_IOERR_TRUNCATE : system_methods->xTruncate(file, size);
}

int on_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const int rc = system_open(vfs, name, file, flags, out_flags);
  if (rc == SQLITE_OK) {
    system_methods = file->pMethods;
    failing_methods = *system_methods;
    failing_methods.xWrite = on_write;
    failing_methods.xSync = on_sync;
    failing_methods.xTruncate = on_truncate;
    file->pMethods = &failing_methods;
  }
  return rc;
}

void fail_operation(std::uint64_t number) {
  operations_left = number;
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  system_open = vfs->xOpen;
  vfs->xOpen = on_open;
}

int work(const std::string& path, const Child::Report& report) {
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  if (!journal || !(*journal)->load()) {
    return 1;
  }
  for (std::uint64_t k = 0; k < kBatches; ++k) {
    if (!(*journal)->append(numbered_batch(k + 1), sequence_after(k))) {
      return 2;
    }
    report(k + 1);
    if (k == 3 &&
        !(*journal)->write_snapshot(sequence_after(3), EventMaker(1).list(9), sequence_after(2))) {
      return 3;
    }
  }
  return 0;
}

TEST(DiskErrorTest, EveryFailedOperationStopsTheProcessAndLosesNothing) {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 0;; ++n) {
    TempDir dir;
    const std::string path = dir.file("journal.db");
    Child child([&](const Child::Report& report) {
      ::close(2);  // the message of check() would fill the test's output
      fail_operation(n);
      return work(path, report);
    });
    std::uint64_t acknowledged = 0;
    while (const std::optional<std::uint64_t> number = child.next()) {
      acknowledged = *number;
    }
    const int status = child.wait();
    if (status == 0) {
      break;
    }
    ASSERT_EQ(status, -SIGABRT) << "operation " << n;
    ++failures;
    Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
    ASSERT_TRUE(journal.ok()) << "operation " << n << ": " << journal.error().message;
    std::uint64_t durable = 0;
    ASSERT_EQ(mismatch(**journal, acknowledged, &durable), "") << "operation " << n;
  }
  EXPECT_GT(failures, 30U);
}

}  // namespace
}  // namespace bmgpu::store
