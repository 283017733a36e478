// The market: a deterministic state machine with one owner thread. No clock, no randomness, no
// I/O, no threads, no floating point.
//
// Live operation and recovery go through the same two doors:
//   Decision d = decide(state, stamp, command);   // pure
//   for (const Event& e : d.events) apply(state, e);
// A restart is: apply every event of the snapshot and of the tail to an empty State.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/commands.h"
#include "core/events.h"
#include "core/reason.h"
#include "core/state.h"
#include "core/types.h"

namespace bmgpu::core {

// What comes in from outside with a command. `now` never runs backwards: decide() uses
// max(now, the last stamp applied).
struct Stamp {
  Instant now;
  Incarnation incarnation;
};

// The attempts that a node shall have changed: send it its desired set.
struct SyncNode {
  NodeId node;
  bool operator==(const SyncNode&) const = default;
};
using Request = std::variant<SyncNode>;

struct Done {  // accepted; nothing to say beyond the events
  bool operator==(const Done&) const = default;
};
struct Refused {
  Reason reason;
  bool operator==(const Refused&) const = default;
};
struct OrderAnswer {  // PlaceOrder, StopOrder, ExtendLease; view it with order_view()
  OrderId order;
  std::optional<LeaseId> lease;   // absent while it waits
  std::optional<Reason> waiting;  // why it waits
  bool operator==(const OrderAnswer&) const = default;
};
// A start and what a lease from then on would cost.
struct StartOption {
  Instant start;
  Money total;
  bool operator==(const StartOption&) const = default;
};
struct QuoteAnswer {
  QuoteId quote;
  // Of a quote with a wish for time, at the same moment; promised by no quote.
  std::optional<StartOption> now;   // absent: it could not start now
  std::vector<StartOption> others;  // the next cheapest starts, at most two
  bool operator==(const QuoteAnswer&) const = default;
};
using Answer = std::variant<Done, Refused, OrderAnswer, QuoteAnswer>;

struct Decision {
  std::vector<Event> events;      // empty if refused
  std::vector<Request> requests;  // to be sent only when the events are durable; no duplicates
  Answer answer;
};

// Pure. Never fails: what the rules forbid is a Refused answer without events.
Decision decide(const State& state, const Stamp& stamp, const Command& command);

// The only mutator. REQUIRES: `event` came from decide() on this state, or from snapshot().
// Anything else is a check().
void apply(State& state, const Event& event);

// Events that turn an empty State into one with the same digest.
std::vector<Event> snapshot(const State& state);

// Stops the process (check()) when a rule of docs/ARCHITECTURE.md "invariants" is broken.
// O(size of the state): for tests, simulation, and start-up.
void check_invariants(const State& state);

// The part of it that concerns the lease, order and node that `event`, just applied, is about.
// O(size of that node): for simulation, after each event.
void check_invariants_of(const State& state, const Event& event);

// Names a state: equal for equal states on every machine.
std::uint64_t digest(const State& state);

// The earliest time at which a Tick would do something; absent if nothing is pending.
std::optional<Instant> next_deadline(const State& state);

}  // namespace bmgpu::core
