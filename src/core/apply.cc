#include <algorithm>

#include "core/apply_parts.h"
#include "core/core.h"

namespace bmgpu::core {

void note_id(State& state, std::uint64_t id) { state.next_id = std::max(state.next_id, id + 1); }

void note_time(State& state, Instant at) { state.last_stamp = std::max(state.last_stamp, at); }

void note_change(State& state) { state.review_due = !state.waiting.empty(); }

void apply(State& state, const Event& event) {
  std::visit([&](const auto& kind) { apply_event(state, kind); }, event);
}

}  // namespace bmgpu::core
