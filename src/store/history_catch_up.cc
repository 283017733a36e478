#include <string>

#include "store/history.h"

namespace bmgpu::store {
namespace {

constexpr std::size_t kEventsPerApply = 4096;

}  // namespace

Result<void> catch_up(Journal& journal, const Loaded& loaded, HistoryWriter& history) {
  if (history.applied() > loaded.last) {
    return Error{ErrorCode::DataLoss,
                 "the history knows event " + std::to_string(history.applied().value()) +
                     ", the journal ends at " + std::to_string(loaded.last.value()) +
                     ": they are of different markets, or the journal is an older copy; move the "
                     "history away to make a new one from the journal"};
  }
  if (history.applied().is_none() && !loaded.snapshot_sequence.is_none()) {
    const Result<std::vector<Recorded>> oldest = journal.read(Sequence(), 1);
    if (!oldest) {
      return oldest.error();
    }
    const bool is_whole = !oldest->empty() && oldest->front().sequence == Sequence(1);
    if (!is_whole) {
      if (Result<void> begun = history.start_from(loaded.snapshot, loaded.snapshot_sequence);
          !begun) {
        return begun;
      }
    }
  }
  while (history.applied() < loaded.last) {
    const Result<std::vector<Recorded>> events = journal.read(history.applied(), kEventsPerApply);
    if (!events) {
      return events.error();
    }
    if (events->empty()) {
      return Error{ErrorCode::DataLoss,
                   "the journal was cut behind event " + std::to_string(history.applied().value()) +
                       ", where the history ends: move the history away to make a new one"};
    }
    if (Result<void> applied = history.apply(*events); !applied) {
      return applied;
    }
  }
  return {};
}

}  // namespace bmgpu::store
