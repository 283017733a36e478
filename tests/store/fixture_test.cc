// This version reads what every released version wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "store/encoding.h"
#include "store/fixture_events.h"
#include "store/history_words.h"
#include "store/sqlite/sqlite_history.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

class FixtureTest : public testing::TestWithParam<std::int64_t> {
 protected:
  std::string file(const std::string& name) const {
    return std::string(STORE_TEST_DATA) + "/v" + std::to_string(GetParam()) + "/" + name;
  }
};

TEST(FixtureEventsTest, HoldEveryKind) {
  std::set<std::size_t> kinds;
  for (const core::Event& event : fixture_events(kSchemaVersion)) {
    kinds.insert(event.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<core::Event>);
}

TEST_P(FixtureTest, ReadsItsEvents) {
  std::ifstream stored(file("events.bin"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stored), std::istreambuf_iterator<char>()};
  std::vector<core::Event> events;
  const Result<void> read = decode_events(bytes, events);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(events == fixture_events(GetParam()));
}

TEST_P(FixtureTest, OpensItsJournal) {
  TempDir dir;
  std::filesystem::copy(file("journal.db"), dir.file("journal.db"));
  Result<std::unique_ptr<Journal>> journal = open_sqlite_journal(dir.file("journal.db"));
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  const Result<Loaded> loaded = (*journal)->load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const std::vector<Recorded> all = fixture_recorded(GetParam());
  EXPECT_TRUE(loaded->snapshot == fixture_events(GetParam()));
  EXPECT_EQ(loaded->snapshot_sequence, kFixtureSnapshotAt);
  EXPECT_TRUE(loaded->tail == std::vector<Recorded>(all.begin() + 4, all.end()));
  EXPECT_EQ(loaded->incarnation, Incarnation(1));
  const Batch batch = fixture_batch(GetParam());
  EXPECT_TRUE((*journal)->find_document("job", 9).value() == batch.documents[0]);
  EXPECT_TRUE((*journal)->find_answer(AccountId(3), "0b6f-key").value() == batch.answers[0]);
}

TEST_P(FixtureTest, OpensItsHistory) {
  TempDir dir;
  std::filesystem::copy(file("history.db"), dir.file("history.db"));
  const Result<std::unique_ptr<HistoryWriter>> writer = open_history_writer(dir.file("history.db"));
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const std::vector<core::Event> events = fixture_events(GetParam());
  EXPECT_EQ((*writer)->applied(), Sequence(events.size()));
  const Result<std::unique_ptr<HistoryReader>> reader = open_history_reader(dir.file("history.db"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const std::optional<HistoryOrder> order = (*reader)->find_lease(LeaseId(10)).value();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->charged, Money(700'000));
  EXPECT_EQ(order->gpu_uuids, (std::vector<std::string>{"GPU-aaaa", "GPU-bbbb"}));
  const auto in_timeline = std::count_if(events.begin(), events.end(), is_in_timeline);
  EXPECT_EQ(std::ssize((*reader)->events({}).value()), in_timeline);
}

INSTANTIATE_TEST_SUITE_P(Formats, FixtureTest, testing::Range<std::int64_t>(1, kSchemaVersion + 1));

}  // namespace
}  // namespace bmgpu::store
