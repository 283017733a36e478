// What every journal promises, run over each of them.
#include <gtest/gtest.h>

#include "store/journal.h"
#include "store/memory/memory_journal.h"
#include "store/numbered_batches.h"
#include "store/sqlite/sqlite_journal.h"
#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

struct MemoryWorld {
  Result<std::unique_ptr<Journal>> open() { return open_memory_journal(storage); }
  MemoryStorage storage;
};

struct SqliteWorld {
  Result<std::unique_ptr<Journal>> open() { return open_sqlite_journal(dir.file("journal.db")); }
  TempDir dir;
};

template <typename World>
class JournalContractTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }

  void reopen() {
    journal_.reset();
    Result<std::unique_ptr<Journal>> opened = world_.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    journal_ = std::move(*opened);
    Result<Loaded> loaded = journal_->load();
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    loaded_ = std::move(*loaded);
  }

  void append_up_to(std::uint64_t k) {
    for (; appended_ < k; ++appended_) {
      const Result<Sequence> last =
          journal_->append(numbered_batch(appended_ + 1), sequence_after(appended_));
      ASSERT_TRUE(last.ok()) << last.error().message;
      ASSERT_EQ(*last, sequence_after(appended_ + 1));
    }
  }

  std::vector<Recorded> read(Sequence after, std::size_t limit) {
    Result<std::vector<Recorded>> events = journal_->read(after, limit);
    EXPECT_TRUE(events.ok());
    return events.ok() ? *events : std::vector<Recorded>();
  }

  std::optional<Document> document(std::string_view kind, std::uint64_t id) {
    Result<std::optional<Document>> found = journal_->find_document(kind, id);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::nullopt;
  }

  std::optional<StoredAnswer> answer(AccountId account, std::string_view key) {
    Result<std::optional<StoredAnswer>> found = journal_->find_answer(account, key);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::nullopt;
  }

  void append(const Batch& batch) {
    const Sequence before = loaded_.last;
    Result<Sequence> last = journal_->append(batch, before);
    ASSERT_TRUE(last.ok()) << last.error().message;
    ASSERT_EQ(last->value(), before.value() + batch.events.size());
    loaded_.last = *last;
  }

  World world_;
  std::unique_ptr<Journal> journal_;
  Loaded loaded_;
  std::uint64_t appended_ = 0;
};

using Worlds = testing::Types<MemoryWorld, SqliteWorld>;
TYPED_TEST_SUITE(JournalContractTest, Worlds);

TYPED_TEST(JournalContractTest, StartsEmptyInItsFirstIncarnation) {
  EXPECT_EQ(this->loaded_.incarnation, Incarnation(1));
  EXPECT_TRUE(this->loaded_.last.is_none());
  EXPECT_TRUE(this->loaded_.snapshot_sequence.is_none());
  EXPECT_TRUE(this->loaded_.snapshot.empty());
  EXPECT_TRUE(this->loaded_.tail.empty());
  this->reopen();
  EXPECT_EQ(this->loaded_.incarnation, Incarnation(1));
}

TYPED_TEST(JournalContractTest, HoldsWhatWasAppendedAfterReopening) {
  this->append_up_to(30);
  this->reopen();
  EXPECT_EQ(this->loaded_.last, sequence_after(30));
  EXPECT_EQ(this->loaded_.tail, numbered_events(30));
  for (std::uint64_t k = 1; k <= 30; ++k) {
    EXPECT_EQ(this->document("job", k), numbered_document(k));
    EXPECT_EQ(this->answer(kNumberedAccount, "key-" + std::to_string(k)), numbered_answer(k));
  }
}

TYPED_TEST(JournalContractTest, RefusesAnotherExpectedSequenceAndWritesNothing) {
  this->append_up_to(3);
  for (const Sequence wrong : {Sequence(), sequence_after(2), Sequence(99)}) {
    const Result<Sequence> refused = this->journal_->append(numbered_batch(4), wrong);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::DataLoss);
  }
  EXPECT_EQ(this->document("job", 4), std::nullopt);
  EXPECT_EQ(this->answer(kNumberedAccount, "key-4"), std::nullopt);
  EXPECT_EQ(this->read(Sequence(), 100), numbered_events(3));
  this->append_up_to(4);  // control: the right one is taken
  EXPECT_EQ(this->read(Sequence(), 100), numbered_events(4));
}

TYPED_TEST(JournalContractTest, LoadsAgainWhatIsDurableAfterAFailedAppend) {
  this->append_up_to(3);
  ASSERT_FALSE(this->journal_->append(numbered_batch(4), Sequence(99)).ok());
  const Result<Loaded> again = this->journal_->load();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->last, sequence_after(3));
  EXPECT_EQ(again->tail, numbered_events(3));
  this->append_up_to(5);
}

TYPED_TEST(JournalContractTest, OneOwnerAtATime) {
  const Result<std::unique_ptr<Journal>> second = this->world_.open();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_NE(second.error().message.find("open"), std::string::npos);
  this->append_up_to(1);  // the first is unharmed
  this->reopen();         // and a closed one makes room
}

TYPED_TEST(JournalContractTest, AnEmptyBatchChangesNothing) {
  this->append_up_to(2);
  const Result<Sequence> last = this->journal_->append(Batch(), sequence_after(2));
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(*last, sequence_after(2));
}

TYPED_TEST(JournalContractTest, ABatchWithoutEventsKeepsTheSequence) {
  Batch batch;
  batch.documents = {{"token", 1, AccountId(2), "secret hash"}};
  this->append(batch);
  EXPECT_TRUE(this->loaded_.last.is_none());
  this->reopen();
  EXPECT_EQ(this->document("token", 1), batch.documents[0]);
}

TYPED_TEST(JournalContractTest, ReadsInOrderFromAnySequence) {
  this->append_up_to(12);
  const std::vector<Recorded> all = numbered_events(12);
  for (std::uint64_t after = 0; after <= all.size(); ++after) {
    EXPECT_EQ(this->read(Sequence(after), 1000), numbered_events(12, Sequence(after)));
  }
  EXPECT_EQ(this->read(Sequence(4), 3), std::vector<Recorded>(all.begin() + 4, all.begin() + 7));
  EXPECT_TRUE(this->read(Sequence(4), 0).empty());
  EXPECT_TRUE(this->read(Sequence(1000), 5).empty());
}

TYPED_TEST(JournalContractTest, ReplaysSnapshotAndTail) {
  this->append_up_to(10);
  const std::vector<core::Event> state = EventMaker(99).list(9000);
  ASSERT_TRUE(this->journal_->write_snapshot(sequence_after(8), state, sequence_after(5)).ok());
  this->append_up_to(12);
  this->reopen();
  EXPECT_EQ(this->loaded_.snapshot_sequence, sequence_after(8));
  EXPECT_EQ(this->loaded_.snapshot, state);
  EXPECT_EQ(this->loaded_.tail, numbered_events(12, sequence_after(8)));
  EXPECT_EQ(this->loaded_.last, sequence_after(12));
  // Events behind the cut are still there for the history projection.
  EXPECT_EQ(this->read(sequence_after(5), 1000), numbered_events(12, sequence_after(5)));
}

TYPED_TEST(JournalContractTest, GoesOnAfterACutOfEverything) {
  this->append_up_to(6);
  const std::vector<core::Event> state = EventMaker(5).list(3);
  ASSERT_TRUE(this->journal_->write_snapshot(sequence_after(6), state, sequence_after(6)).ok());
  EXPECT_TRUE(this->read(Sequence(), 100).empty());
  this->reopen();
  EXPECT_EQ(this->loaded_.last, sequence_after(6));
  EXPECT_TRUE(this->loaded_.tail.empty());
  this->append_up_to(7);
  this->reopen();
  EXPECT_EQ(this->loaded_.snapshot, state);
  EXPECT_EQ(this->loaded_.tail, numbered_events(7, sequence_after(6)));
}

TYPED_TEST(JournalContractTest, ALaterSnapshotReplacesAnEarlierOne) {
  this->append_up_to(4);
  ASSERT_TRUE(
      this->journal_->write_snapshot(sequence_after(3), EventMaker(1).list(5000), sequence_after(1))
          .ok());
  ASSERT_TRUE(this->journal_->write_snapshot(sequence_after(4), {}, sequence_after(2)).ok());
  this->reopen();
  EXPECT_EQ(this->loaded_.snapshot_sequence, sequence_after(4));
  EXPECT_TRUE(this->loaded_.snapshot.empty());
  EXPECT_EQ(this->read(Sequence(), 100), numbered_events(4, sequence_after(2)));
}

TYPED_TEST(JournalContractTest, DocumentsAreReplacedErasedAndListedById) {
  Batch batch;
  batch.documents = {{"job", 30, AccountId(1), "c"},
                     {"job", 4, AccountId(1), std::string("a\0b", 3)},
                     {"jobs", 1, AccountId(1), "other kind"},
                     {"job", ~std::uint64_t{0}, AccountId(2), "largest id"},
                     {"job", 30, AccountId(1), "replaced"}};
  this->append(batch);
  Batch erase;
  erase.documents = {{"job", 4, AccountId(1), ""}, {"job", 77, AccountId(1), ""}};
  this->append(erase);
  EXPECT_EQ(this->document("job", 4), std::nullopt);
  EXPECT_EQ(this->document("job", 30), batch.documents[4]);
  EXPECT_EQ(this->document("job", ~std::uint64_t{0}), batch.documents[3]);
  const Result<std::vector<Document>> jobs = this->journal_->documents("job");
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(*jobs, (std::vector<Document>{batch.documents[4], batch.documents[3]}));
  EXPECT_TRUE(this->journal_->documents("nothing").value().empty());
}

TYPED_TEST(JournalContractTest, AnswersAreFoundByAccountAndKey) {
  Batch batch;
  StoredAnswer mine = numbered_answer(1);
  StoredAnswer theirs = mine;
  theirs.account = AccountId(8);
  theirs.answer = "theirs";
  batch.answers = {mine, theirs};
  this->append(batch);
  EXPECT_EQ(this->answer(mine.account, "key-1"), mine);
  EXPECT_EQ(this->answer(theirs.account, "key-1"), theirs);
  EXPECT_EQ(this->answer(mine.account, "key-"), std::nullopt);
  mine.answer = "a later one";
  batch.answers = {mine};
  this->append(batch);
  EXPECT_EQ(this->answer(mine.account, "key-1"), mine);
}

TYPED_TEST(JournalContractTest, OldAnswersGoWithASnapshot) {
  const Instant start = Instant() + hours(1000);
  const auto at = [&](Instant time, const char* key) {
    Batch batch;
    batch.at = time;
    batch.events = {core::QuoteClosed{QuoteId(1)}};
    batch.answers = {numbered_answer(1)};
    batch.answers[0].key = key;
    batch.answers[0].at = time;
    return batch;
  };
  this->append(at(start, "old"));
  this->append(at(start + milliseconds(1), "kept"));
  this->append(at(start + milliseconds(1) + kAnswerLifetime, "new"));
  EXPECT_NE(this->answer(kNumberedAccount, "old"), std::nullopt);
  ASSERT_TRUE(this->journal_->write_snapshot(Sequence(3), {}, Sequence(3)).ok());
  EXPECT_EQ(this->answer(kNumberedAccount, "old"), std::nullopt);
  EXPECT_NE(this->answer(kNumberedAccount, "kept"), std::nullopt);
  EXPECT_NE(this->answer(kNumberedAccount, "new"), std::nullopt);
}

using JournalContractDeathTest = JournalContractTest<MemoryWorld>;

TEST_F(JournalContractDeathTest, OurOwnBugsStopTheProcess) {
  append_up_to(2);
  EXPECT_DEATH(static_cast<void>(journal_->write_snapshot(Sequence(99), {}, Sequence(1))),
               "beyond the last event");
  EXPECT_DEATH(static_cast<void>(journal_->write_snapshot(Sequence(1), {}, Sequence(2))),
               "beyond its snapshot");
  Batch batch;
  batch.documents = {{"Bad Kind", 1, AccountId(1), "x"}};
  EXPECT_DEATH(static_cast<void>(journal_->append(batch, sequence_after(2))), "kind");
}

}  // namespace
}  // namespace bmgpu::store
