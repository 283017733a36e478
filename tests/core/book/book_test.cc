// The forward book: every small case, and the economics of what is booked ahead.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

#include "core/core.h"
#include "core/ledger/charge.h"
#include "core/support/market.h"
#include "core/views.h"

namespace bmgpu::core {
namespace {

PlaceOrder booking(std::uint64_t tenant, std::int64_t gpus, Instant start, Duration duration) {
  PlaceOrder command;
  command.tenant = AccountId(tenant);
  command.resources.gpus = gpus;
  command.duration = duration;
  command.wish = {StartKind::At, start, Instant(), {}};
  return command;
}

const Lease& lease_of(const TestMarket& market, const Answer& answer) {
  return market.state().leases.at(lease_in(answer));
}

// One order of the small cases: GPUs, first slot, slots.
struct Small {
  std::int64_t gpus;
  std::int64_t first;
  std::int64_t slots;
};
std::vector<Small> small_orders() {
  std::vector<Small> all;
  for (std::int64_t gpus = 1; gpus <= 2; ++gpus) {
    for (std::int64_t first = 0; first < 4; ++first) {
      for (std::int64_t slots = 1; first + slots <= 4; ++slots) {
        all.push_back({gpus, first, slots});
      }
    }
  }
  return all;
}

// Two nodes of one and two GPUs, four slots: which of them are taken.
struct Board {
  std::array<std::array<bool, 4>, 3> taken{};  // GPU 0 on node 1, GPUs 1 and 2 on node 2

  std::vector<std::size_t> free(std::uint64_t node, const Small& order) const {
    std::vector<std::size_t> gpus;
    for (std::size_t gpu = node == 1 ? 0 : 1; gpu <= (node == 1 ? 0U : 2U); ++gpu) {
      bool is_free = true;
      for (std::int64_t slot = order.first; slot < order.first + order.slots; ++slot) {
        is_free = is_free && !taken[gpu][static_cast<std::size_t>(slot)];
      }
      if (is_free) {
        gpus.push_back(gpu);
      }
    }
    return gpus;
  }
};

// Books it on the node with the fewest free GPUs that are enough, the lower id first; none:
// refused.
std::optional<std::uint64_t> place(Board& board, const Small& order) {
  std::optional<std::uint64_t> best;
  for (const std::uint64_t node : {1U, 2U}) {
    const auto free = std::ssize(board.free(node, order));
    if (free >= order.gpus && (!best || free < std::ssize(board.free(*best, order)))) {
      best = node;
    }
  }
  if (best) {
    auto gpus = board.free(*best, order);
    gpus.resize(static_cast<std::size_t>(order.gpus));
    for (const std::size_t gpu : gpus) {
      for (std::int64_t slot = order.first; slot < order.first + order.slots; ++slot) {
        board.taken[gpu][static_cast<std::size_t>(slot)] = true;
      }
    }
  }
  return best;
}

// Runs three orders one after another and compares each with the board. Returns how many it booked.
int run_small_case(State state, const std::array<Small, 3>& orders) {
  const Instant first = kStart + hours(1);
  Board board;
  int booked = 0;
  for (const Small& order : orders) {
    const Decision decision =
        decide(state, Stamp{kStart, Incarnation(1)},
               booking(1, order.gpus, first + kSlot * order.first, kSlot * order.slots));
    const auto expected = place(board, order);
    EXPECT_EQ(refusal_in(decision.answer) == nullptr, expected.has_value());
    for (const Event& event : decision.events) {
      const auto& lease = std::get<LeaseGranted>(event).lease;
      EXPECT_EQ(lease.allocations.back().ranks.front().node, NodeId(expected.value_or(0)));
      core::apply(state, event);
      ++booked;
    }
  }
  check_invariants(state);
  return booked;
}

TEST(BookTest, EverySmallCaseIsBookedOrRefusedAsThereIsRoom) {
  TestMarket empty;
  empty.add_node(1, 1);
  empty.add_node(2, 2);
  const std::vector<Small> all = small_orders();
  int booked = 0;
  for (const Small& a : all) {
    for (const Small& b : all) {
      for (const Small& c : all) {
        booked += run_small_case(empty.state(), {a, b, c});
      }
    }
  }
  EXPECT_GT(booked, 3 * 20 * 20 * 20 / 2);
  EXPECT_LT(booked, 3 * 20 * 20 * 20 * 9 / 10);
}

// A market of 32 GPUs in which `rented` are leased and a forecast says `curve` for the next days.
TestMarket market_with(std::int64_t rented, const std::vector<std::int64_t>& curve) {
  TestMarket market;
  market.add_node(1, 16);
  market.add_node(2, 16);
  for (; rented > 0; rented -= std::min<std::int64_t>(rented, 8)) {
    market.order(500, std::min<std::int64_t>(rented, 8), hours(24 * 30));
  }
  if (!curve.empty()) {
    const ClassId gpu_class = market.state().classes.begin()->first;
    market.run(SetDemandCurve{gpu_class, SiteId(1), slot_of(kStart), curve});
  }
  return market;
}

struct Drawn {
  std::int64_t rented;
  std::vector<std::int64_t> curve;
  std::int64_t gpus;
  std::int64_t first;
  std::int64_t slots;
  Instant start() const { return kStart + kSlot * first; }
};
Drawn draw() {
  const auto curve = *rc::gen::container<std::vector<std::int64_t>>(
      *rc::gen::element(0, 1) * 96, rc::gen::inRange<std::int64_t>(0, 40));
  return Drawn{*rc::gen::inRange<std::int64_t>(0, 17), curve, *rc::gen::inRange<std::int64_t>(1, 6),
               *rc::gen::inRange<std::int64_t>(1, 60), *rc::gen::inRange<std::int64_t>(2, 60)};
}
Money quoted(TestMarket& market, std::int64_t gpus, Instant start, Duration duration) {
  return lease_of(market, market.run(booking(1, gpus, start, duration))).quoted;
}

TEST(BookTest, APrefixOfABookingCostsWhatABookingOfThatLengthCosts) {
  EXPECT_TRUE(rc::check("prefix", [] {
    const Drawn drawn = draw();
    const std::int64_t part = *rc::gen::inRange<std::int64_t>(1, drawn.slots);
    TestMarket market = market_with(drawn.rented, drawn.curve);
    const Lease whole =
        lease_of(market, market.run(booking(1, drawn.gpus, drawn.start(), kSlot * drawn.slots)));
    TestMarket other = market_with(drawn.rented, drawn.curve);
    RC_ASSERT(
        charge_between(whole.slot_prices, whole.start, whole.start, whole.start + kSlot * part) ==
        quoted(other, drawn.gpus, drawn.start(), kSlot * part));
  }));
}

TEST(BookTest, CuttingABookingByTimeNeverCostsLess) {
  EXPECT_TRUE(rc::check("split in time", [] {
    const Drawn drawn = draw();
    const Duration whole = kSlot * drawn.slots;
    const Duration first = minutes(*rc::gen::inRange<std::int64_t>(1, drawn.slots * 15));
    TestMarket one = market_with(drawn.rented, drawn.curve);
    const Money total = quoted(one, drawn.gpus, drawn.start(), whole);
    TestMarket two = market_with(drawn.rented, drawn.curve);
    const bool second_first = *rc::gen::arbitrary<bool>();
    Money sum;
    for (const bool is_second : {second_first, !second_first}) {
      sum += is_second ? quoted(two, drawn.gpus, drawn.start() + first, whole - first)
                       : quoted(two, drawn.gpus, drawn.start(), first);
    }
    RC_ASSERT(sum >= total);
  }));
}

TEST(BookTest, CuttingABookingByGpusCostsTheSame) {
  EXPECT_TRUE(rc::check("split in GPUs", [] {
    const Drawn drawn = draw();
    TestMarket one = market_with(drawn.rented, drawn.curve);
    const Answer answer = one.run(booking(1, drawn.gpus, drawn.start(), kSlot * drawn.slots));
    TestMarket several = market_with(drawn.rented, drawn.curve);
    std::vector<Price> sum(lease_of(one, answer).slot_prices.size());
    for (std::int64_t gpu = 0; gpu < drawn.gpus; ++gpu) {
      const Answer part = several.run(booking(1, 1, drawn.start(), kSlot * drawn.slots));
      for (std::size_t slot = 0; slot < sum.size(); ++slot) {
        sum[slot] += lease_of(several, part).slot_prices[slot];
      }
    }
    RC_ASSERT(lease_of(one, answer).slot_prices == sum);
  }));
}

TEST(BookTest, ExtendingABookingCostsWhatALongerOneCosts) {
  EXPECT_TRUE(rc::check("extend", [] {
    const Drawn drawn = draw();
    const std::int64_t first = *rc::gen::inRange<std::int64_t>(1, drawn.slots);
    TestMarket market = market_with(drawn.rented, drawn.curve);
    const Answer answer = market.run(booking(1, drawn.gpus, drawn.start(), kSlot * first));
    market.run(ExtendLease{AccountId(1), order_in(answer), kSlot * (drawn.slots - first), Price()});
    TestMarket other = market_with(drawn.rented, drawn.curve);
    RC_ASSERT(lease_of(market, answer).quoted ==
              quoted(other, drawn.gpus, drawn.start(), kSlot * drawn.slots));
  }));
}

TEST(BookTest, StoppingAStartedBookingNeverCostsLessThanGivingItBackOrUsingIt) {
  TestMarket market = market_with(0, {});
  Lease lease = lease_of(market, market.run(booking(1, 2, kStart + hours(1), hours(10))));
  const Money tenth((lease.quoted.count() + 9) / 10);
  EXPECT_EQ(bill(lease, EndReason::Stopped, lease.start).charged, tenth);
  lease.running_since = lease.start;
  EXPECT_EQ(bill(lease, EndReason::Stopped, lease.start + minutes(15)).charged, tenth);
  const Bill most = bill(lease, EndReason::Stopped, lease.start + hours(5));
  EXPECT_GT(most.charged, tenth);
  EXPECT_EQ(most.fee, Money());
  EXPECT_EQ(bill(lease, EndReason::NodeLost, lease.start).charged, Money());
}

TEST(BookTest, ForwardPricesAreWhatAQuarterHourIsBookedFor) {
  const std::vector<std::int64_t> curve = {4, 30, 12, 0, 64, 7, 7, 9};
  TestMarket market = market_with(8, curve);
  const PoolKey key = market.state().pools.begin()->first;
  const std::vector<SlotView> slots = forward_prices(market.state(), key, market.now());
  ASSERT_EQ(std::ssize(slots), Limits::kBookSlots);
  for (std::size_t i = 1; i < 12; ++i) {
    TestMarket other = market_with(8, curve);
    const Answer answer = other.run(booking(1, 1, slot_start(slots[i].slot), kSlot));
    EXPECT_EQ(lease_of(other, answer).slot_prices.front(), slots[i].price) << i;
  }
  EXPECT_EQ(slots[1].demand, 30);
  EXPECT_EQ(slots[1].supply, 32);
  EXPECT_TRUE(forward_prices(market.state(), PoolKey{}, market.now()).empty());
}

}  // namespace
}  // namespace bmgpu::core
