#include "sim/engine/stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace bmgpu::sim {
namespace {

class StreamTest : public testing::Test {
 protected:
  void send(End from, int what) {
    stream->send(from, [this, what] { arrived.push_back(what); });
  }
  void run(Duration length) {
    const Instant until = timeline.now() + length;
    while (timeline.step(until)) {
    }
  }

  Timeline timeline{Instant(0)};
  Link link{timeline, 1};
  std::shared_ptr<Stream> stream = link.connect();
  std::vector<int> arrived;
};

TEST_F(StreamTest, KeepsTheOrderHoweverLongEachTakes) {
  link.set_latency({milliseconds(1000), 500, milliseconds(5000)});
  std::vector<int> sent;
  for (int i = 0; i < 50; ++i) {
    send(End::Node, i);
    sent.push_back(i);
  }
  run(minutes(10));
  EXPECT_EQ(arrived, sent);
}

TEST_F(StreamTest, ACutOneWayHoldsThatWayUntilItHeals) {
  link.cut(End::Market);
  send(End::Node, 1);
  send(End::Market, 2);
  run(seconds(1));
  EXPECT_EQ(arrived, (std::vector<int>{2}));
  link.heal(End::Market);
  send(End::Node, 3);
  run(seconds(1));
  EXPECT_EQ(arrived, (std::vector<int>{2, 1, 3}));
}

TEST_F(StreamTest, ALongCutBreaksItAndBothEndsLearnOfIt) {
  int told = 0;
  stream->on_closed(End::Market, [&] { ++told; });
  stream->on_closed(End::Node, [&] { ++told; });
  link.cut(End::Market);
  send(End::Node, 1);
  run(minutes(1));
  link.heal(End::Market);
  run(minutes(1));
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(arrived.empty());
  EXPECT_FALSE(stream->is_open(End::Node));
}

TEST_F(StreamTest, WhatWasSentBeforeACloseArrivesAndTheCloserIsNotTold) {
  int told_market = 0;
  int told_node = 0;
  stream->on_closed(End::Market, [&] { ++told_market; });
  stream->on_closed(End::Node, [&] { ++told_node; });
  send(End::Market, 1);
  send(End::Node, 2);
  stream->close(End::Market);
  send(End::Market, 3);
  run(seconds(1));
  EXPECT_EQ(arrived, (std::vector<int>{1}));
  EXPECT_EQ(told_market, 0);
  EXPECT_EQ(told_node, 1);
}

}  // namespace
}  // namespace bmgpu::sim
