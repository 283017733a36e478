// apply() by kind of event. Private to core.
#pragma once

#include "core/events.h"
#include "core/state.h"

namespace bmgpu::core {

void apply_event(State& state, const PolicySet& event);
void apply_event(State& state, const ClassDefined& event);
void apply_event(State& state, const NodeRegistered& event);
void apply_event(State& state, const NodeReadyChanged& event);
void apply_event(State& state, const NodeListingChanged& event);
void apply_event(State& state, const NodeLeftSupply& event);
void apply_event(State& state, const NodeLost& event);
void apply_event(State& state, const NodeRemoved& event);
void apply_event(State& state, const GpuStateChanged& event);
void apply_event(State& state, const QuoteIssued& event);
void apply_event(State& state, const QuoteClosed& event);
void apply_event(State& state, const OrderQueued& event);
void apply_event(State& state, const OrderClosed& event);
void apply_event(State& state, const OrdersReviewed& event);
void apply_event(State& state, const PricesMoved& event);
void apply_event(State& state, const CountersSet& event);
void apply_event(State& state, const LeaseGranted& event);
void apply_event(State& state, const LeaseRunning& event);
void apply_event(State& state, const LeaseExtended& event);
void apply_event(State& state, const LeaseEnding& event);
void apply_event(State& state, const LeaseEnded& event);
void apply_event(State& state, const LeaseStarted& event);
void apply_event(State& state, const LeaseMoved& event);
void apply_event(State& state, const LeaseDelayed& event);
void apply_event(State& state, const LeaseCancelled& event);
void apply_event(State& state, const JobGiven& event);
void apply_event(State& state, const DemandCurveSet& event);
void apply_event(State& state, const SlotClosed& event);

// Ids given out are never given out again; the market's time never runs backwards.
void note_id(State& state, std::uint64_t id);
void note_time(State& state, Instant at);
// Something changed that may let a waiting order or a booked lease start.
void note_change(State& state);
// Orders that wait, booked leases that are late or should go elsewhere.
bool something_waits(const State& state);

Lease& lease_at(State& state, LeaseId id);  // REQUIRES: it is live
// The items become Leased.
void hold_items(State& state, const Lease& lease);

}  // namespace bmgpu::core
