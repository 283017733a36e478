// This version reads what every released version wrote.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "store/encoding.h"
#include "store/fixture_events.h"
#include "store/sqlite/sqlite_history.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

const std::string kVersion1 = std::string(STORE_TEST_DATA) + "/v1/";

TEST(FixtureTest, HoldsEveryKindOfEvent) {
  std::set<std::size_t> kinds;
  for (const core::Event& event : fixture_events()) {
    kinds.insert(event.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<core::Event>);
}

TEST(FixtureTest, ReadsEventsOfVersion1) {
  std::ifstream file(kVersion1 + "events.bin", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<core::Event> events;
  const Result<void> read = decode_events(bytes, events);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(events == fixture_events());
}

TEST(FixtureTest, OpensAJournalOfVersion1) {
  TempDir dir;
  std::filesystem::copy(kVersion1 + "journal.db", dir.file("journal.db"));
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(dir.file("journal.db"));
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  const Result<Loaded> loaded = (*journal)->load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const std::vector<Recorded> all = fixture_recorded();
  EXPECT_TRUE(loaded->snapshot == fixture_events());
  EXPECT_EQ(loaded->snapshot_sequence, kFixtureSnapshotAt);
  EXPECT_TRUE(loaded->tail == std::vector<Recorded>(all.begin() + 4, all.end()));
  EXPECT_EQ(loaded->incarnation, Incarnation(1));
  const Batch batch = fixture_batch();
  EXPECT_TRUE((*journal)->find_document("job", 9).value() == batch.documents[0]);
  EXPECT_TRUE((*journal)->find_answer(AccountId(3), "0b6f-key").value() == batch.answers[0]);
}

TEST(FixtureTest, OpensAHistoryOfVersion1) {
  TempDir dir;
  std::filesystem::copy(kVersion1 + "history.db", dir.file("history.db"));
  const Result<std::unique_ptr<HistoryWriter>> writer = open_history_writer(dir.file("history.db"));
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ((*writer)->applied(), Sequence(fixture_events().size()));
  const Result<std::unique_ptr<HistoryReader>> reader = open_history_reader(dir.file("history.db"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const std::optional<HistoryOrder> order = (*reader)->find_lease(LeaseId(10)).value();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->charged, Money(700'000));
  EXPECT_EQ(order->gpu_uuids, (std::vector<std::string>{"GPU-aaaa", "GPU-bbbb"}));
  EXPECT_EQ((*reader)->events({}).value().size(), fixture_events().size() - 2);
}

}  // namespace
}  // namespace bmgpu::store
