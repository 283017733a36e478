// What orders, quotes and extensions share.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/core.h"
#include "core/placement/placement.h"

namespace bmgpu::core {

// `resources` with normalised words, or why it is malformed.
std::variant<Resources, Reason> checked_resources(const Resources& resources);
std::optional<Reason> check_duration(Duration duration);
std::optional<Reason> check_price_limit(Price limit);

// For people: "1.250" units per GPU-hour.
std::string per_hour(Price price);

// Whether the candidate is within `limit`; else the reason with its price.
std::optional<Reason> above_limit(const State& state, const Candidate& candidate, std::int64_t gpus,
                                  Instant now, Duration duration, Price limit);

// The waiting order that is served next: of those that fit and whose limit is met, the one with the
// least GPU-time, then the oldest, then by id.
std::optional<std::pair<const Order*, Candidate>> next_to_serve(const State& state, Instant now);

// A lease for the order at the candidate's place and prices; booked, if its start is not now.
LeaseGranted grant(const State& state, const Stamp& stamp, const Order& order,
                   const Candidate& candidate, PolicyVersion policy);

// What starts on each rank of a lease.
std::vector<Attempt> first_attempts(const Stamp& stamp, std::size_t ranks);

// Why an order does not start now, for people. Absent: it is next.
std::optional<Reason> why_waiting(const State& state, const Order& order, Instant now);

}  // namespace bmgpu::core
