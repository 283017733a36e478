#include "agent/log_forwarder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>

#include "agent/attempt_table.h"
#include "agent/event_loop.h"
#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

// A market that keeps what it gets and acknowledges when the test says so.
class LogForwarderTest : public testing::Test {
 protected:
  LogForwarderTest() { restart(); }

  // Another agent: what the one before had posted to its loop is gone with it.
  void restart() {
    forwarder_.reset();
    loop_ = *EventLoop::create();
    forwarder_ = std::make_unique<LogForwarder>(
        *loop_, log_,
        LogForwarder::Options{[this](const v1::AgentFrame& frame) {
                                if (!reachable_) {
                                  return false;
                                }
                                sent_.push_back(frame.log());
                                return true;
                              },
                              [this] { return queued_; },
                              [this](const LogForwarder::Key&) { completed_ = true; }});
    forwarder_->add(key_, name_, dir_.path());
  }

  void write_lines(int first, int last, std::size_t width = 1) {
    std::ofstream out(dir_.path() + "/log", std::ios::app);
    for (int i = first; i <= last; ++i) {
      out << "2026-11-30T18:00:00.000000000+00:00 stdout F " << std::string(width, 'x') << i
          << "\n";
    }
  }

  // Runs the loop until `holds`; false after 10 s.
  bool run_until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const EventLoop::TimerId id = loop_->every(milliseconds(1), [&] {
      if (holds() || std::chrono::steady_clock::now() > deadline) {
        loop_->stop();
      }
    });
    loop_->run();
    loop_->cancel(id);
    return holds();
  }
  bool run_until_sent(std::size_t lines) {
    return run_until([this, lines] { return sequences().size() >= lines; });
  }
  void acknowledge(std::uint64_t next, bool complete = false) {
    v1::LogAck ack;
    ack.set_lease(name_.lease);
    ack.set_rank(name_.rank);
    ack.set_attempt(name_.attempt);
    ack.set_next_sequence(next);
    ack.set_complete(complete);
    forwarder_->acknowledged(ack);
  }
  static std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = first; i <= last; ++i) {
      all.push_back(i);
    }
    return all;
  }

  std::vector<std::uint64_t> sequences() const {
    std::vector<std::uint64_t> all;
    for (const v1::LogAppend& append : sent_) {
      for (const v1::LogLine& line : append.lines()) {
        all.push_back(line.sequence());
      }
    }
    return all;
  }

  TempDir dir_;
  wire::Log log_{{wire::LogLevel::Off, wire::LogFormat::Text, ""}};
  std::unique_ptr<EventLoop> loop_;
  const AttemptName name_{"lease-3", 0, 1};
  const LogForwarder::Key key_ = *key_of(name_);
  bool reachable_ = true;
  std::size_t queued_ = 0;
  bool completed_ = false;
  std::vector<v1::LogAppend> sent_;
  std::unique_ptr<LogForwarder> forwarder_;
};

TEST_F(LogForwarderTest, SendsWhatIsThereAndWhatComes) {
  write_lines(1, 3);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(3));
  write_lines(4, 5);
  forwarder_->grown(key_);
  ASSERT_TRUE(run_until_sent(5));
  EXPECT_EQ(sequences(), range(1, 5));
  EXPECT_EQ(sent_[0].lease(), "lease-3");
  EXPECT_EQ(sent_[0].lines(0).text(), "x1");
  EXPECT_FALSE(completed_);
}

TEST_F(LogForwarderTest, AfterAReconnectSendsAgainWhatWasNotAcknowledged) {
  write_lines(1, 4);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(4));
  acknowledge(5);
  write_lines(5, 6);
  forwarder_->grown(key_);
  ASSERT_TRUE(run_until_sent(6));
  forwarder_->session_closed();
  sent_.clear();
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(2));
  EXPECT_EQ(sequences(), range(5, 6));
}

TEST_F(LogForwarderTest, ANewAgentGoesOnWhereTheMarketIs) {
  write_lines(1, 4);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(4));
  acknowledge(5);
  forwarder_->tick();
  restart();
  sent_.clear();
  write_lines(5, 7);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(3));
  EXPECT_EQ(sequences(), range(5, 7));
}

TEST_F(LogForwarderTest, IsCompleteOnceTheMarketSaysSo) {
  write_lines(1, 2);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(2));
  forwarder_->ended(key_);
  ASSERT_TRUE(run_until([this] { return sent_.back().complete(); }));
  EXPECT_EQ(sent_.back().lines_size(), 0);
  acknowledge(3);
  EXPECT_FALSE(completed_);
  acknowledge(3, true);
  EXPECT_TRUE(completed_);
}

TEST_F(LogForwarderTest, AJobWithoutOutputIsCompleteToo) {
  forwarder_->ended(key_);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until([this] { return !sent_.empty(); }));
  EXPECT_TRUE(sent_[0].complete());
  acknowledge(1, true);
  EXPECT_TRUE(completed_);
}

TEST_F(LogForwarderTest, KeepsAtMostAMebibyteOnItsWay) {
  write_lines(1, 6000, 1000);
  forwarder_->session_opened();
  std::size_t before = 0;
  std::uint64_t next = 1;
  while (sequences().size() < 6000) {
    ASSERT_TRUE(run_until([&] { return sequences().size() > before; }));
    std::size_t settled = 0;
    ASSERT_TRUE(run_until([&] {
      const bool same = settled == sequences().size();
      settled = sequences().size();
      return same;
    }));
    EXPECT_LE((settled - (next - 1)) * 1000,
              LogForwarder::kUnacknowledgedBytesMax + LogForwarder::kBatchBytes);
    for (const v1::LogAppend& append : sent_) {
      EXPECT_LE(append.ByteSizeLong(), LogForwarder::kBatchBytes);
    }
    before = settled;
    next = settled + 1;
    acknowledge(next);
  }
  EXPECT_EQ(sequences(), range(1, 6000));
}

TEST_F(LogForwarderTest, WaitsForASlowNetworkAndLosesNothing) {
  write_lines(1, 3);
  queued_ = LogForwarder::kSessionBytesMax + 1;
  forwarder_->session_opened();
  int looks = 0;
  run_until([&] { return ++looks > 30; });
  EXPECT_TRUE(sent_.empty());
  queued_ = 0;
  reachable_ = false;
  looks = 0;
  run_until([&] { return ++looks > 30; });
  reachable_ = true;
  ASSERT_TRUE(run_until_sent(3));
  EXPECT_EQ(sequences(), range(1, 3));
}

TEST_F(LogForwarderTest, AMarketFromABackupGetsOldLinesAgain) {
  write_lines(1, 5);
  forwarder_->session_opened();
  ASSERT_TRUE(run_until_sent(5));
  acknowledge(6);
  sent_.clear();
  acknowledge(3);
  ASSERT_TRUE(run_until_sent(3));
  EXPECT_EQ(sequences(), range(3, 5));
}

}  // namespace
}  // namespace bmgpu::agent
