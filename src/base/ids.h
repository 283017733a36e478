// Ids: distinct 64-bit unsigned integers, never reused, 0 = "none yet" and never given out.
//
// The text form for people is a prefix and the decimal number ("lease-17"); wire/ids.h parses it.
#pragma once

#include <compare>
#include <cstdint>

namespace bmgpu {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t value) : value_(value) {}
  constexpr std::uint64_t value() const { return value_; }
  constexpr bool is_none() const { return value_ == 0; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint64_t value_ = 0;
};

using AccountId = Id<struct AccountIdTag>;  // who pays or is paid: tenant, owner, operator
using NodeId = Id<struct NodeIdTag>;
using GpuId = Id<struct GpuIdTag>;      // one device for its life in this market
using ClassId = Id<struct ClassIdTag>;  // model, memory, form
using SiteId = Id<struct SiteIdTag>;
using QuoteId = Id<struct QuoteIdTag>;
using OrderId = Id<struct OrderIdTag>;
using LeaseId = Id<struct LeaseIdTag>;

// Raised by one each time a market database is restored from a backup; part of every fencing token.
using Incarnation = Id<struct IncarnationTag>;
// One start of one rank; 1 for the first.
using AttemptNumber = Id<struct AttemptNumberTag>;
// Position in the journal; 1 for the first event.
using Sequence = Id<struct SequenceTag>;
// Which version of the market policy priced something.
using PolicyVersion = Id<struct PolicyVersionTag>;

// Refuses effects of older attempts: compared as (incarnation, attempt).
struct FencingToken {
  Incarnation incarnation;
  AttemptNumber attempt;
  friend constexpr auto operator<=>(const FencingToken&, const FencingToken&) = default;
};

}  // namespace bmgpu
