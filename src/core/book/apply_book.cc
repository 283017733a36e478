#include "base/check.h"
#include "core/apply_parts.h"
#include "core/book/stays.h"
#include "core/indexes.h"

namespace bmgpu::core {
namespace {

// Changes a booked lease while it is out of the book and off the deadlines.
template <typename Change>
void change_booked(State& state, LeaseId id, Change change) {
  Lease& lease = lease_at(state, id);
  check(lease.state == LeaseState::Booked, "apply: the lease is not booked");
  state.deadlines.erase(*deadline_of(state, lease));
  remove_stay(state, lease);
  change(lease);
  if (lease.state != LeaseState::Cancelled) {
    add_stay(state, lease);
  }
  state.deadlines.insert(*deadline_of(state, lease));
}

}  // namespace

void apply_event(State& state, const LeaseStarted& event) {
  change_booked(state, event.id, [&](Lease& lease) {
    check(lease.without_job == event.attempts.empty(), "apply: a job without an attempt, or not");
    lease.attempts = event.attempts;
    lease.started = event.at;
    lease.preparing_since = event.at;
    lease.delayed = false;
    lease.state = lease.without_job ? LeaseState::Held : LeaseState::Preparing;
    if (lease.without_job) {
      lease.running_since = event.at;
    }
  });
  hold_items(state, state.leases.at(event.id));
  state.review_due = state.review_due && something_waits(state);
  note_time(state, event.at);
}

void apply_event(State& state, const LeaseMoved& event) {
  change_booked(state, event.id,
                [&](Lease& lease) { lease.allocations.back().ranks = event.ranks; });
  note_time(state, event.at);
  note_change(state);
}

void apply_event(State& state, const LeaseDelayed& event) {
  change_booked(state, event.id, [](Lease& lease) { lease.delayed = true; });
  note_time(state, event.at);
}

void apply_event(State& state, const LeaseCancelled& event) {
  change_booked(state, event.id, [&](Lease& lease) {
    lease.state = LeaseState::Cancelled;
    lease.ending = EndReason::Cancelled;
    lease.ending_since = event.at;
    lease.delayed = false;
  });
  note_time(state, event.at);
  note_change(state);
}

void apply_event(State& state, const JobGiven& event) {
  Lease& lease = lease_at(state, event.id);
  check(lease.without_job, "apply: a second job");
  if (const auto deadline = deadline_of(state, lease)) {
    state.deadlines.erase(*deadline);
  }
  lease.without_job = false;
  lease.restart = event.restart;
  if (lease.state == LeaseState::Held) {
    lease.attempts = event.attempts;
    lease.preparing_since = event.at;
    lease.state = LeaseState::Preparing;
  }
  if (const auto deadline = deadline_of(state, lease)) {
    state.deadlines.insert(*deadline);
  }
  note_time(state, event.at);
}

void apply_event(State& state, const DemandCurveSet& event) {
  const PoolKey key{event.gpu_class, event.site};
  if (event.gpus.empty()) {
    state.curves.erase(key);
  } else {
    state.curves[key] = event;
  }
}

void apply_event(State& state, const SlotClosed& event) {
  check(state.closed_slots.empty() || event.slot > state.closed_slots.back().slot,
        "apply: a slot is closed twice");
  for (const ClosedPool& pool : event.pools) {
    auto& week = state.week_demand[PoolKey{pool.gpu_class, pool.site}];
    week.resize(Limits::kClosedSlots, -1);
    week[static_cast<std::size_t>(event.slot.count() % Limits::kClosedSlots)] = pool.demand;
  }
  state.closed_slots.push_back(event);
  if (std::ssize(state.closed_slots) > Limits::kClosedSlots) {
    state.closed_slots.pop_front();
  }
  if (event.slot >= state.open_slot) {  // a snapshot has set the clock before
    advance_book(state, event.slot + SlotNumber(1));
  }
  note_time(state, event.at);
}

}  // namespace bmgpu::core
