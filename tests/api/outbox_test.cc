#include "api/outbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace bmgpu::api {
namespace {

Delivery numbered(std::uint64_t number) {
  Delivery delivery;
  delivery.number = number;
  return delivery;
}

TEST(OutboxTest, ManyDeliveriesCostOneWakeUp) {
  int wakes = 0;
  Outbox outbox([&] { ++wakes; });
  for (std::uint64_t i = 0; i < 1000; ++i) {
    outbox.push(numbered(i));
  }
  EXPECT_EQ(wakes, 1);
  std::vector<Delivery> taken;
  outbox.take(taken);
  ASSERT_EQ(taken.size(), 1000U);
  EXPECT_EQ(taken[999].number, 999U);
  outbox.push(numbered(1));
  EXPECT_EQ(wakes, 2);
}

TEST(OutboxTest, LosesNothingBetweenThreads) {
  std::atomic<int> wakes = 0;
  Outbox outbox([&] { ++wakes; });
  constexpr std::uint64_t kEach = 20'000;
  std::vector<std::thread> senders;
  for (int i = 0; i < 2; ++i) {
    senders.emplace_back([&] {
      for (std::uint64_t n = 0; n < kEach; ++n) {
        outbox.push(numbered(n));
      }
    });
  }
  std::size_t total = 0;
  std::vector<Delivery> taken;
  while (total < 2 * kEach) {
    outbox.take(taken);
    total += taken.size();
    taken.clear();
  }
  for (std::thread& sender : senders) {
    sender.join();
  }
  EXPECT_EQ(total, 2 * kEach);
  EXPECT_GT(wakes, 0);
}

TEST(OutboxTest, DoesNothingOnceClosed) {
  int wakes = 0;
  Outbox outbox([&] { ++wakes; });
  outbox.close();
  outbox.push(numbered(1));
  std::vector<Delivery> taken;
  outbox.take(taken);
  EXPECT_EQ(wakes, 0);
  EXPECT_TRUE(taken.empty());
}

}  // namespace
}  // namespace bmgpu::api
