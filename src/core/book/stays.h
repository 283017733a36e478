// Who has which GPUs of a node, and until when: to the millisecond, where the calendar says it by
// slots. Keeps both, for apply() and the invariants.
//
// A lane is a GPU's place among the named GPUs of its class on its node, by id: a bit of a mask.
#pragma once

#include <cstdint>
#include <vector>

#include "core/state.h"

namespace bmgpu::core {

// The slots that [from, until) touches, as [first, until).
struct SlotSpan {
  SlotNumber first;
  SlotNumber until;
};
SlotSpan slots_of(Instant from, Instant until);

std::uint64_t lanes_of(const NodeRecord& node, ClassId gpu_class, const std::vector<Item>& items);
std::uint64_t healthy_lanes(const NodeRecord& node, ClassId gpu_class);
std::uint64_t free_lanes(const NodeRecord& node, ClassId gpu_class);  // GpuState::Free
// Held in any part of [from, until) by leases other than `except`.
std::uint64_t held_lanes(const NodeRecord& node, ClassId gpu_class, Instant from, Instant until,
                         LeaseId except = LeaseId());
// When the first of `lanes` is held by another lease than `except`, from `from` on; absent: never.
std::optional<Instant> held_from(const NodeRecord& node, ClassId gpu_class, std::uint64_t lanes,
                                 Instant from, LeaseId except);
// The most CPU, memory and scratch that leases other than `except` have of it at one time.
NodeCapacity peak_use(const NodeRecord& node, Instant from, Instant until,
                      LeaseId except = LeaseId());

// Whether a booked lease cannot stay where it is: its node is drained or lost, or a GPU has failed.
bool is_displaced(const State& state, const Lease& lease);

// A lease takes its place in the book, or leaves it. REQUIRES: calls alternate for a lease; nothing
// of it changes in between. A Cancelled lease has no place.
void add_stay(State& state, const Lease& lease);
void remove_stay(State& state, const Lease& lease);

// A node's rows in the calendars. Its GPUs, their classes and its site change between the two.
void leave_book(State& state, NodeRecord& node);
void enter_book(State& state, NodeRecord& node);
// Which GPUs may be booked, and which bookings should go elsewhere, follows what the node is now.
void refresh_offer(State& state, const NodeRecord& node);

// The book begins at `first` from now on. REQUIRES: not backwards.
void advance_book(State& state, SlotNumber first);

}  // namespace bmgpu::core
