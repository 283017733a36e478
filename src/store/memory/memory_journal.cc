#include "store/memory/memory_journal.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/journal_rules.h"

namespace bmgpu::store {
namespace {

class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(MemoryStorage& storage) : storage_(storage) { storage_.is_open = true; }
  ~MemoryJournal() override { storage_.is_open = false; }
  MemoryJournal(const MemoryJournal&) = delete;
  MemoryJournal& operator=(const MemoryJournal&) = delete;

  Result<Loaded> load() override {
    loaded_ = true;
    Loaded loaded;
    loaded.incarnation = storage_.incarnation;
    loaded.snapshot = storage_.snapshot;
    loaded.snapshot_sequence = storage_.snapshot_sequence;
    loaded.tail.assign(first_after(storage_.snapshot_sequence), storage_.events.cend());
    loaded.last = storage_.last;
    return loaded;
  }

  Result<Sequence> append(const Batch& batch, Sequence expected) override {
    check(loaded_, "journal: load() comes first");
    if (expected != storage_.last) {
      return second_writer(expected, storage_.last);
    }
    for (const core::Event& event : batch.events) {
      storage_.last = Sequence(storage_.last.value() + 1);
      storage_.events.push_back({storage_.last, batch.at, event});
    }
    for (const Document& document : batch.documents) {
      check_document_kind(document.kind);
      auto key = std::pair(document.kind, document.id);
      if (document.bytes.empty()) {
        storage_.documents.erase(key);
      } else {
        storage_.documents.insert_or_assign(std::move(key), document);
      }
    }
    for (const StoredAnswer& answer : batch.answers) {
      storage_.answers.insert_or_assign(std::pair(answer.account, answer.key), answer);
    }
    storage_.last_at = std::max(storage_.last_at, batch.at);
    return storage_.last;
  }

  Result<void> write_snapshot(Sequence sequence, const std::vector<core::Event>& events,
                              Sequence cut) override {
    check(loaded_, "journal: load() comes first");
    check_cut(sequence, cut, storage_.last);
    storage_.snapshot = events;
    storage_.snapshot_sequence = sequence;
    storage_.events.erase(storage_.events.cbegin(), first_after(cut));
    std::erase_if(storage_.answers, [&](const auto& entry) {
      return entry.second.at + kAnswerLifetime < storage_.last_at;
    });
    return {};
  }

  Result<std::vector<Recorded>> read(Sequence after, std::size_t limit) override {
    const auto first = first_after(after);
    const auto available = static_cast<std::size_t>(storage_.events.cend() - first);
    return std::vector<Recorded>(first,
                                 first + static_cast<std::ptrdiff_t>(std::min(limit, available)));
  }

  Result<std::optional<StoredAnswer>> find_answer(AccountId account,
                                                  std::string_view key) override {
    const auto found = storage_.answers.find(std::pair(account, std::string(key)));
    return found == storage_.answers.end() ? std::nullopt : std::optional(found->second);
  }

  Result<std::optional<Document>> find_document(std::string_view kind, std::uint64_t id) override {
    const auto found = storage_.documents.find(std::pair(std::string(kind), id));
    return found == storage_.documents.end() ? std::nullopt : std::optional(found->second);
  }

  Result<std::vector<Document>> documents(std::string_view kind) override {
    std::vector<Document> found;
    const auto first =
        storage_.documents.lower_bound(std::pair(std::string(kind), std::uint64_t{0}));
    for (auto it = first; it != storage_.documents.end() && it->first.first == kind; ++it) {
      found.push_back(it->second);
    }
    return found;
  }

  const SyncLatency& sync_latency() const override { return sync_latency_; }

 private:
  std::vector<Recorded>::const_iterator first_after(Sequence sequence) const {
    return std::upper_bound(storage_.events.cbegin(), storage_.events.cend(), sequence,
                            [](Sequence s, const Recorded& event) { return s < event.sequence; });
  }

  MemoryStorage& storage_;
  SyncLatency sync_latency_;
  bool loaded_ = false;
};

}  // namespace

Result<std::unique_ptr<Journal>> open_memory_journal(MemoryStorage& storage) {
  if (storage.is_open) {
    return Error{ErrorCode::Unavailable, "another journal has this storage open: close it first"};
  }
  return std::unique_ptr<Journal>(std::make_unique<MemoryJournal>(storage));
}

}  // namespace bmgpu::store
