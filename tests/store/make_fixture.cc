// Writes the files that a released version leaves behind: `make_fixture FOLDER`. Run once per
// format, by the version that is released with it; the files are then never made again
// (data/README.md).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "store/encoding.h"
#include "store/fixture_events.h"
#include "store/numbered_batches.h"
#include "store/sqlite/sqlite_history.h"
#include "store/sqlite/sqlite_journal.h"

namespace bmgpu::store {
namespace {

Result<void> write_journal(const std::string& path) {
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(path);
  if (!journal) {
    return journal.error();
  }
  if (const Result<Loaded> loaded = (*journal)->load(); !loaded) {
    return loaded.error();
  }
  const Batch batch = fixture_batch(kSchemaVersion);
  const Result<Sequence> last = (*journal)->append(batch, Sequence());
  if (!last) {
    return last.error();
  }
  return (*journal)->write_snapshot(kFixtureSnapshotAt, fixture_events(kSchemaVersion), Sequence());
}

Result<void> write_history(const std::string& path) {
  Result<std::unique_ptr<HistoryWriter>> history = open_history_writer(path);
  if (!history) {
    return history.error();
  }
  if (Result<void> applied = (*history)->apply(fixture_recorded(kSchemaVersion)); !applied) {
    return applied;
  }
  const Result<Sequence> durable = (*history)->make_durable();
  return durable ? Result<void>() : durable.error();
}

}  // namespace
}  // namespace bmgpu::store

int main(int argc, char** argv) {
  using bmgpu::Result;
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fixture FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder);
  bmgpu::store::EventEncoder encoder;
  std::ofstream(folder + "/events.bin", std::ios::binary)
      << encoder.encode(bmgpu::store::fixture_events(bmgpu::store::kSchemaVersion));
  for (const Result<void>& done : {bmgpu::store::write_journal(folder + "/journal.db"),
                                   bmgpu::store::write_history(folder + "/history.db")}) {
    if (!done) {
      std::fprintf(stderr, "%s\n", done.error().message.c_str());
      return 1;
    }
  }
  for (const char* log : {"/journal.db-wal", "/history.db-wal", "/history.db-shm"}) {
    std::filesystem::remove(folder + log);
  }
  return 0;
}
