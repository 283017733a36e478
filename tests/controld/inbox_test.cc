#include "controld/inbox.h"

#include <gtest/gtest.h>

#include <thread>

#include "controld/turn.h"

namespace bmgpu::controld {
namespace {

using namespace std::chrono_literals;

Work nothing() {
  return [](Turn&) {};
}

TEST(InboxTest, RefusesBeyondItsLimitButNotWhatMustNotBeDropped) {
  Inbox inbox(2);
  EXPECT_TRUE(inbox.post(nothing()));
  EXPECT_TRUE(inbox.post(nothing()));
  EXPECT_FALSE(inbox.post(nothing()));
  inbox.post_always(nothing());
  EXPECT_EQ(inbox.size(), 3U);
}

TEST(InboxTest, TakesBatchesInOrder) {
  Inbox inbox(10);
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(inbox.post([&order, i](Turn&) { order.push_back(i); }));
  }
  core::State state;
  Turn turn(state, {}, {}, true, {});
  std::vector<Work> batch;
  std::vector<std::size_t> sizes;
  while (inbox.size() > 0) {
    batch.clear();
    inbox.take(batch, 2, 0ns, 0, 0ns);
    sizes.push_back(batch.size());
    for (Work& work : batch) {
      work(turn);
    }
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(InboxTest, WorkAndCloseWakeWhoWaits) {
  Inbox inbox(10);
  std::vector<Work> batch;
  std::thread poster([&] { EXPECT_TRUE(inbox.post(nothing())); });
  inbox.take(batch, 10, 20s, 0, 0ns);
  poster.join();
  EXPECT_EQ(batch.size(), 1U);
  batch.clear();
  std::thread closer([&] { inbox.close(); });
  inbox.take(batch, 10, 20s, 0, 0ns);
  closer.join();
  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(inbox.closed());
}

}  // namespace
}  // namespace bmgpu::controld
