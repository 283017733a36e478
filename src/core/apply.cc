#include <algorithm>

#include "core/apply_parts.h"
#include "core/book/stays.h"
#include "core/core.h"

namespace bmgpu::core {

void note_id(State& state, std::uint64_t id) { state.next_id = std::max(state.next_id, id + 1); }

void note_time(State& state, Instant at) {
  state.last_stamp = std::max(state.last_stamp, at);
  if (state.open_slot == SlotNumber()) {
    advance_book(state, std::max(slot_of(at), SlotNumber()));
  }
}

bool something_waits(const State& state) {
  return !state.waiting.empty() || !state.delayed.empty() || !state.displaced.empty();
}

void note_change(State& state) { state.review_due = something_waits(state); }

void apply(State& state, const Event& event) {
  std::visit([&](const auto& kind) { apply_event(state, kind); }, event);
}

}  // namespace bmgpu::core
