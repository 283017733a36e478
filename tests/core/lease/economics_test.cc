// The holes of a price that falls with the length of a lease, each with the rule that closes it: no
// way of cutting a lease into pieces pays less than the lease, and nobody ever pays above the
// quote.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/core.h"
#include "core/ledger/charge.h"
#include "core/market/pricing.h"
#include "core/support/market.h"

namespace bmgpu::core {
namespace {

// A market of 32 GPUs in which `rented` are taken for long.
TestMarket market_with(std::int64_t rented) {
  TestMarket market;
  market.add_node(1, 16);
  market.add_node(2, 16);
  while (rented > 0) {
    const std::int64_t gpus = std::min<std::int64_t>(rented, 8);
    market.order(500, gpus, hours(24 * 30));
    rented -= gpus;
  }
  return market;
}

const Lease& lease_of(const TestMarket& market, const Answer& answer) {
  return market.state().leases.at(lease_in(answer));
}

Money quoted_for(std::int64_t rented, Instant start, std::int64_t gpus, Duration duration) {
  TestMarket market = market_with(rented);
  market.at(start - kStart);
  return lease_of(market, market.order(1, gpus, duration)).quoted;
}

// The bill of a lease that is metered from its first instant until `stopped`.
Bill billed(const Lease& lease, Instant stopped) {
  Lease running = lease;
  running.running_since = lease.start;
  return bill(running, EndReason::Stopped, stopped);
}

struct Drawn {
  std::int64_t rented;
  std::int64_t gpus;
  std::int64_t slots;
};
Drawn draw() {
  return Drawn{*rc::gen::inRange<std::int64_t>(0, 25), *rc::gen::inRange<std::int64_t>(1, 6),
               *rc::gen::inRange<std::int64_t>(2, 80)};
}

TEST(EconomicsTest, APrefixCostsWhatALeaseOfThatLengthCosts) {
  EXPECT_TRUE(rc::check("prefix", [] {
    const Drawn drawn = draw();
    const std::int64_t part = *rc::gen::inRange<std::int64_t>(1, drawn.slots);
    TestMarket market = market_with(drawn.rented);
    const Lease lease = lease_of(market, market.order(1, drawn.gpus, kSlot * drawn.slots));
    RC_ASSERT(billed(lease, kStart + kSlot * part).charged ==
              quoted_for(drawn.rented, kStart, drawn.gpus, kSlot * part));
  }));
}

TEST(EconomicsTest, StoppingEarlierNeverCostsMore) {
  EXPECT_TRUE(rc::check("stop", [] {
    const Drawn drawn = draw();
    TestMarket market = market_with(drawn.rented);
    market.at(milliseconds(*rc::gen::inRange<std::int64_t>(0, 2'000'000)));
    const Lease lease = lease_of(market, market.order(1, drawn.gpus, kSlot * drawn.slots));
    const Duration length = lease.end - lease.start;
    const Duration early = milliseconds(*rc::gen::inRange<std::int64_t>(0, length.count()));
    const Duration later =
        milliseconds(*rc::gen::inRange<std::int64_t>(early.count(), length.count()));
    RC_ASSERT(billed(lease, lease.start + early).charged <=
              billed(lease, lease.start + later).charged);
    RC_ASSERT(billed(lease, lease.start + early).billed >= minutes(15));
    RC_ASSERT(billed(lease, lease.end).charged == lease.quoted);
  }));
}

TEST(EconomicsTest, TwoLeasesInARowNeverCostLessThanOne) {
  EXPECT_TRUE(rc::check("split in time", [] {
    const Drawn drawn = draw();
    const Instant start = kStart + milliseconds(*rc::gen::inRange<std::int64_t>(0, 900'000));
    const Duration whole = kSlot * drawn.slots;
    const Duration first =
        milliseconds(*rc::gen::inRange<std::int64_t>(60'000, whole.count() - 60'000));
    const Money one = quoted_for(drawn.rented, start, drawn.gpus, whole);
    const Money two = quoted_for(drawn.rented, start, drawn.gpus, first) +
                      quoted_for(drawn.rented, start + first, drawn.gpus, whole - first);
    RC_ASSERT(two >= one);
  }));
}

TEST(EconomicsTest, ExtendingCostsWhatALongerLeaseCostsOrMore) {
  EXPECT_TRUE(rc::check("extend", [] {
    const Drawn drawn = draw();
    const std::int64_t first = *rc::gen::inRange<std::int64_t>(1, drawn.slots);
    TestMarket market = market_with(drawn.rented);
    const Answer answer = market.order(1, drawn.gpus, kSlot * first);
    const Duration waited =
        kSlot * *rc::gen::inRange<std::int64_t>(0, first) + milliseconds(*rc::gen::inRange(0, 2));
    market.report_running(lease_in(answer));
    market.at(waited);
    market.run(ExtendLease{AccountId(1), order_in(answer), kSlot * (drawn.slots - first), Price()});
    const Lease& lease = lease_of(market, answer);
    const Money whole = quoted_for(drawn.rented, kStart, drawn.gpus, kSlot * drawn.slots);
    RC_ASSERT(lease.quoted >= whole);
    if (waited.count() == 0) {  // the load of the next hour is the same
      RC_ASSERT(lease.quoted == whole);
    }
  }));
}

TEST(EconomicsTest, SeveralOrdersCostTheSameAsOneForAllGpus) {
  EXPECT_TRUE(rc::check("split in GPUs", [] {
    const Drawn drawn = draw();
    TestMarket market = market_with(drawn.rented);
    std::vector<Price> sum;
    for (std::int64_t gpu = 0; gpu < drawn.gpus; ++gpu) {
      const Lease& lease = lease_of(market, market.order(1, 1, kSlot * drawn.slots));
      sum.resize(lease.slot_prices.size());
      for (std::size_t slot = 0; slot < sum.size(); ++slot) {
        sum[slot] += lease.slot_prices[slot];
      }
    }
    TestMarket other = market_with(drawn.rented);
    const Lease& one = lease_of(other, other.order(1, drawn.gpus, kSlot * drawn.slots));
    RC_ASSERT(one.slot_prices == sum);
  }));
}

// Booking to the knee of T·0.9^T and leaving early, at twice the base: DESIGN's example.
TEST(EconomicsTest, EighteenHoursNeverCostLessThanNineAndAHalf) {
  const Money nine = quoted_for(20, kStart, 1, minutes(570));
  EXPECT_GT(quoted_for(20, kStart, 1, hours(18)), nine);
}

TEST(EconomicsTest, HostFailuresAreNotBilledTheLeastTime) {
  TestMarket market = market_with(0);
  Lease lease = lease_of(market, market.order(1, 1, hours(1)));
  lease.running_since = lease.start;
  const Instant failed = lease.start + minutes(3);
  EXPECT_EQ(bill(lease, EndReason::NodeLost, failed).billed, minutes(3));
  EXPECT_EQ(bill(lease, EndReason::GpuLost, failed).billed, minutes(3));
  EXPECT_EQ(bill(lease, EndReason::JobExited, failed).billed, minutes(15));
  EXPECT_EQ(bill(lease, EndReason::OutOfMemory, failed).billed, minutes(15));
  EXPECT_EQ(bill(lease, EndReason::DeviceCheckFailed, failed), Bill{});
  EXPECT_EQ(bill(lease, EndReason::StartFailed, failed), Bill{});
  lease.running_since = std::nullopt;
  EXPECT_EQ(bill(lease, EndReason::Stopped, failed), Bill{});
}

TEST(EconomicsTest, TheLeastTimeStaysInsideWhatWasQuoted) {
  TestMarket market = market_with(0);
  Lease lease = lease_of(market, market.order(1, 1, minutes(16)));
  lease.running_since = lease.start + minutes(5);
  const Bill total = bill(lease, EndReason::TimeUp, lease.end);
  EXPECT_EQ(total.billed, minutes(15));
  EXPECT_EQ(total.from, lease.start + minutes(1));
  EXPECT_LE(total.charged, lease.quoted);
}

TEST(EconomicsTest, AShortLeaseIsQuotedTheLeastTime) {
  EXPECT_EQ(quoted_for(3, kStart, 1, minutes(1)), quoted_for(3, kStart, 1, minutes(15)));
  TestMarket market = market_with(3);
  const Answer answer = market.order(1, 1, minutes(1));
  const Money before = lease_of(market, answer).quoted;
  market.run(ExtendLease{AccountId(1), order_in(answer), minutes(14), Price()});
  EXPECT_EQ(lease_of(market, answer).quoted, before);
  market.run(ExtendLease{AccountId(1), order_in(answer), minutes(1), Price()});
  EXPECT_GT(lease_of(market, answer).quoted, before);
}

}  // namespace
}  // namespace bmgpu::core
