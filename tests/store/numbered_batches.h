// A stream of batches in which number k is always the same, so that a test knows what a journal
// must hold after k appends without having kept it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/event_maker.h"
#include "store/journal.h"

namespace bmgpu::store {

inline constexpr AccountId kNumberedAccount{7};

inline std::uint64_t events_in_batch(std::uint64_t k) { return 1 + k % 3; }

// The last sequence after batches 1 … k.
inline Sequence sequence_after(std::uint64_t k) {
  std::uint64_t events = 0;
  for (std::uint64_t i = 1; i <= k; ++i) {
    events += events_in_batch(i);
  }
  return Sequence(events);
}

inline Document numbered_document(std::uint64_t k, std::size_t bytes = 200) {
  return {"job", k, kNumberedAccount, std::to_string(k) + std::string(bytes, 'd')};
}

inline StoredAnswer numbered_answer(std::uint64_t k) {
  StoredAnswer answer;
  answer.account = kNumberedAccount;
  answer.key = "key-" + std::to_string(k);
  answer.request.fill(static_cast<std::uint8_t>(k));
  answer.answer = "answer " + std::to_string(k);
  answer.at = Instant(static_cast<std::int64_t>(k));
  return answer;
}

inline Batch numbered_batch(std::uint64_t k, std::size_t document_bytes = 200) {
  Batch batch;
  batch.at = Instant(static_cast<std::int64_t>(k));
  batch.events = EventMaker(k).list(events_in_batch(k));
  batch.documents = {numbered_document(k, document_bytes)};
  batch.answers = {numbered_answer(k)};
  return batch;
}

// Events of batches 1 … k with a sequence > after.
inline std::vector<Recorded> numbered_events(std::uint64_t k, Sequence after = Sequence()) {
  std::vector<Recorded> events;
  std::uint64_t sequence = 0;
  for (std::uint64_t i = 1; i <= k; ++i) {
    const Batch batch = numbered_batch(i, 0);
    for (const core::Event& event : batch.events) {
      if (++sequence > after.value()) {
        events.push_back({Sequence(sequence), batch.at, event});
      }
    }
  }
  return events;
}

// Whether `journal`, just opened, holds exactly batches 1 … k for some k ≥ `at_least`, behind
// whatever snapshot it has. Says what is wrong, or nothing; k comes out in `found`.
std::string mismatch(Journal& journal, std::uint64_t at_least, std::uint64_t* found);

}  // namespace bmgpu::store
