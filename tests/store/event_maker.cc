#include "store/event_maker.h"

#include <limits>

#include "base/check.h"

namespace bmgpu::store {

std::vector<core::Event> EventMaker::list(std::size_t count) {
  std::vector<core::Event> events;
  for (std::size_t i = 0; i < count; ++i) {
    events.push_back(any());
  }
  return events;
}

std::int64_t EventMaker::number() {
  switch (prng_.below(6)) {
    case 0:
      return 0;
    case 1:
      return -1;
    case 2:
      return std::numeric_limits<std::int64_t>::max();
    case 3:
      return std::numeric_limits<std::int64_t>::min();
    case 4:
      return static_cast<std::int64_t>(prng_.below(1000));
    default:
      return static_cast<std::int64_t>(prng_.next());
  }
}

// Any bytes: also NUL and what is not UTF-8.
std::string EventMaker::text() {
  std::string made;
  for (std::uint64_t left = prng_.below(12); left > 0; --left) {
    made.push_back(static_cast<char>(prng_.below(256)));
  }
  return made;
}

std::vector<Price> EventMaker::prices() {
  return some([this] { return quantity<Price>(); });
}

std::optional<Instant> EventMaker::maybe_instant() {
  return maybe([this] { return instant(); });
}

std::optional<std::int32_t> EventMaker::exit_code() {
  return maybe([this] { return static_cast<std::int32_t>(number()); });
}

core::Resources EventMaker::resources() {
  return {number(), text(), number(), number(), number(), number()};
}

core::MarketPolicy EventMaker::policy() {
  return {id<PolicyVersion>(),
          text(),
          some([this] {
            return core::BasePrice{text(), number()};
          }),
          number(),
          number(),
          number(),
          number(),
          number(),
          number(),
          number(),
          quantity<Duration>(),
          quantity<Duration>(),
          quantity<Duration>(),
          quantity<Duration>(),
          quantity<Duration>(),
          quantity<Duration>(),
          quantity<Duration>(),
          quantity<Duration>(),
          number(),
          driver()};
}

core::RankPlacement EventMaker::rank() {
  const auto item = [this] {
    return core::Item{id<GpuId>(), static_cast<std::int32_t>(number()), number()};
  };
  return {id<NodeId>(), some(item), number(), number(), number()};
}

core::Lease EventMaker::lease() {
  const auto allocation = [this] {
    return core::Allocation{instant(), instant(), some([this] { return rank(); })};
  };
  const auto attempt = [this] {
    return core::Attempt{id<AttemptNumber>(), id<Incarnation>(), one_of(core::AttemptState::Ended)};
  };
  return {id<LeaseId>(),
          id<OrderId>(),
          id<AccountId>(),
          id<ClassId>(),
          id<SiteId>(),
          number(),
          instant(),
          instant(),
          prices(),
          some(allocation),
          some(attempt),
          id<PolicyVersion>(),
          restart(),
          one_of(core::LeaseState::Ending),
          maybe_instant(),
          maybe([this] { return end_reason(); }),
          maybe_instant(),
          text(),
          exit_code(),
          quantity<Price>(),
          quantity<Money>(),
          quantity<Duration>(),
          instant(),
          instant(),
          instant(),
          quantity<Price>(),
          number(),
          flag(),
          flag()};
}

core::Order EventMaker::order() {
  return {id<OrderId>(), id<AccountId>(), resources(),   quantity<Duration>(), quantity<Price>(),
          restart(),     instant(),       id<ClassId>(), id<SiteId>(),         flag()};
}

core::Quote EventMaker::quote() {
  const auto factor = [this] { return core::PriceFactor{text(), text(), quantity<Price>()}; };
  return {id<QuoteId>(),     id<AccountId>(),      resources(),         id<ClassId>(), id<SiteId>(),
          quantity<Price>(), quantity<Duration>(), instant(),           instant(),     prices(),
          quantity<Money>(), some(factor),         id<PolicyVersion>(), wish(),        instant()};
}

core::TimeWish EventMaker::wish() {
  const auto interval = [this] { return core::Interval{instant(), instant()}; };
  return {one_of(core::StartKind::Cheapest), instant(), instant(), some(interval)};
}

core::NodeRegistered EventMaker::node_registered() {
  const auto gpu = [this] { return core::RegisteredGpu{id<GpuId>(), id<ClassId>(), text()}; };
  return {id<NodeId>(), id<AccountId>(), id<SiteId>(),     {number(), number(), number()},
          some(gpu),    driver(),        quantity<Price>()};
}

core::LeaseEnded EventMaker::lease_ended() {
  return {id<LeaseId>(),   id<OrderId>(),        id<AccountId>(),   end_reason(),      instant(),
          maybe_instant(), quantity<Duration>(), quantity<Money>(), quantity<Money>(), exit_code(),
          text(),          quantity<Money>()};
}

core::Event EventMaker::of_the_book(std::size_t index) {
  const auto attempt = [this] {
    return core::Attempt{id<AttemptNumber>(), id<Incarnation>(), one_of(core::AttemptState::Ended)};
  };
  switch (index) {
    case 20:
      return core::LeaseStarted{id<LeaseId>(), instant(), some(attempt)};
    case 21:
      return core::LeaseMoved{id<LeaseId>(), instant(), some([this] { return rank(); }), text()};
    case 22:
      return core::LeaseDelayed{id<LeaseId>(), instant(), text()};
    case 23:
      return core::LeaseCancelled{id<LeaseId>(), instant()};
    case 24:
      return core::JobGiven{id<LeaseId>(), instant(), restart(), some(attempt)};
    case 25:
      return core::DemandCurveSet{id<ClassId>(), id<SiteId>(), quantity<SlotNumber>(),
                                  some([this] { return number(); })};
    case 26: {
      const auto pool = [this] {
        return core::ClosedPool{id<ClassId>(), id<SiteId>(), quantity<Price>(), number(), number()};
      };
      return core::SlotClosed{quantity<SlotNumber>(), instant(), some(pool)};
    }
    default:
      check(false, "event maker: a kind of event that it does not know");
      return core::OrdersReviewed{};
  }
}

core::Event EventMaker::first_half(std::size_t index) {
  switch (index) {
    case 0:
      return core::PolicySet{policy()};
    case 1:
      return core::ClassDefined{id<ClassId>(), {text(), number(), one_of(core::Form::Sxm)}};
    case 2:
      return node_registered();
    case 3:
      return core::NodeReadyChanged{id<NodeId>(), flag()};
    case 4:
      return core::NodeListingChanged{id<NodeId>(), one_of(core::NodeListing::Draining), instant()};
    case 5:
      return core::NodeLost{id<NodeId>(), instant()};
    case 6:
      return core::GpuStateChanged{id<GpuId>(), one_of(core::GpuState::Failed)};
    case 7:
      return core::QuoteIssued{quote()};
    case 8:
      return core::QuoteClosed{id<QuoteId>()};
    default:
      return core::OrderQueued{order()};
  }
}

core::Event EventMaker::of_kind(std::size_t index) {
  switch (index) {
    case 10:
      return core::OrderClosed{id<OrderId>(), id<AccountId>(), end_reason()};
    case 11:
      return core::LeaseGranted{lease()};
    case 12:
      return core::LeaseRunning{id<LeaseId>(), static_cast<std::uint32_t>(number()), instant()};
    case 13:
      return core::LeaseExtended{id<LeaseId>(),       instant(),         prices(),
                                 id<PolicyVersion>(), quantity<Money>(), quantity<Price>()};
    case 14:
      return core::LeaseEnding{id<LeaseId>(), end_reason(), instant(), text(), exit_code()};
    case 15:
      return lease_ended();
    case 16:
      return core::CountersSet{static_cast<std::uint64_t>(number()), instant(), flag(),
                               quantity<SlotNumber>()};
    case 17:
      return core::NodeLeftSupply{id<NodeId>()};
    case 18: {
      const auto price = [this] {
        return core::PoolPrice{id<ClassId>(), id<SiteId>(), quantity<Price>()};
      };
      return core::PricesMoved{instant(), some(price)};
    }
    case 19:
      return core::OrdersReviewed{instant()};
    case 27:
      return core::NodeRemoved{id<NodeId>()};
    default:
      return index < 10 ? first_half(index) : of_the_book(index);
  }
}

}  // namespace bmgpu::store
