#include "sim/engine/sim_disk.h"

#include <utility>

#include "base/check.h"
#include "store/encoding.h"

namespace bmgpu::sim {
namespace {

using store::Batch;

std::vector<core::Event> through_encoding(std::vector<core::Event> events) {
  store::EventEncoder encoder;
  std::vector<core::Event> decoded;
  const Result<void> done = store::decode_events(encoder.encode(events), decoded);
  check(done.ok(), "sim: the journal does not read what it writes");
  return decoded;
}

}  // namespace

class SimJournal final : public store::Journal {
 public:
  SimJournal(SimDisk& disk, std::unique_ptr<store::Journal> journal)
      : disk_(disk), journal_(std::move(journal)) {}

  Result<store::Loaded> load() override {
    Result<store::Loaded> loaded = journal_->load();
    if (!loaded) {
      return loaded;
    }
    std::vector<core::Event> tail;
    for (const store::Recorded& recorded : loaded->tail) {
      tail.push_back(recorded.event);
    }
    tail = through_encoding(std::move(tail));
    for (std::size_t i = 0; i < tail.size(); ++i) {
      loaded->tail[i].event = std::move(tail[i]);
    }
    loaded->snapshot = through_encoding(std::move(loaded->snapshot));
    return loaded;
  }

  Result<Sequence> append(const Batch& batch, Sequence expected) override {
    if (disk_.full_) {
      return Error{ErrorCode::Unavailable, "the disk is full"};
    }
    if (disk_.honesty_ == DiskHonesty::Durable) {
      return journal_->append(batch, expected);
    }
    if (const Result<void> flushed = flush(); !flushed) {
      return flushed.error();
    }
    late_.emplace(batch, expected);
    return Sequence(expected.value() + batch.events.size());
  }

  Result<void> write_snapshot(Sequence sequence, const std::vector<core::Event>& events,
                              Sequence cut) override {
    const Result<void> flushed = flush();
    return flushed ? journal_->write_snapshot(sequence, events, cut) : flushed;
  }

  Result<std::vector<store::Recorded>> read(Sequence after, std::size_t limit) override {
    return journal_->read(after, limit);
  }
  Result<std::optional<store::StoredAnswer>> find_answer(AccountId account,
                                                         std::string_view key) override {
    return journal_->find_answer(account, key);
  }
  Result<std::optional<store::Document>> find_document(std::string_view kind,
                                                       std::uint64_t id) override {
    return journal_->find_document(kind, id);
  }
  Result<std::vector<store::Document>> documents(std::string_view kind) override {
    return journal_->documents(kind);
  }
  const store::SyncLatency& sync_latency() const override { return journal_->sync_latency(); }

 private:
  Result<void> flush() {
    if (!late_) {
      return {};
    }
    const auto [batch, expected] = *std::exchange(late_, std::nullopt);
    const Result<Sequence> written = journal_->append(batch, expected);
    return written ? Result<void>() : Result<void>(written.error());
  }

  SimDisk& disk_;
  std::unique_ptr<store::Journal> journal_;
  std::optional<std::pair<Batch, Sequence>> late_;  // acknowledged, but not on the disk
};

std::unique_ptr<store::Journal> SimDisk::open() {
  Result<std::unique_ptr<store::Journal>> journal = store::open_memory_journal(storage_);
  check(journal.ok(), "sim: the disk is open already");
  return std::make_unique<SimJournal>(*this, std::move(*journal));
}

}  // namespace bmgpu::sim
