#include "agent/attempt_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "agent/event_loop.h"
#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

class AttemptTableTest : public testing::Test {
 protected:
  AttemptTableTest() { restart(); }
  ~AttemptTableTest() override {
    for (const auto& [key, attempt] : table_->all()) {
      table_->update_want(key, attempt.want_lease_end, true);
    }
    run_until([this] {
      for (const auto& [key, attempt] : table_->all()) {
        if (table_->look_for_shim(key)) {
          return false;
        }
      }
      return true;
    });
  }

  // Another agent on the same folder.
  void restart() {
    table_.reset();
    loop_ = *EventLoop::create();
    notices_ = 0;
    Result<std::unique_ptr<AttemptTable>> table =
        AttemptTable::create(*loop_, log_, dir_.path(), {TEST_SHIM},
                             {[this](const AttemptTable::Key&) { ++notices_; },
                              [this](const AttemptTable::Key&) { ++log_notices_; }});
    ASSERT_TRUE(table.ok());
    table_ = std::move(*table);
    table_->load();
  }
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
  static v1::AttemptSpec spec(const std::string& lease) {
    v1::AttemptSpec spec;
    spec.set_lease(lease);
    spec.set_attempt(1);
    spec.set_incarnation(7);
    spec.set_lease_end_unix_ms(5000);
    spec.add_gpu_uuids("GPU-1");
    return spec;
  }
  Result<void> start(const AttemptTable::Key& key) {
    v1::ShimOrder order;
    *order.mutable_spec() = spec("lease-3");
    return table_->start(key, order);
  }
  v1::AttemptPhase phase(const AttemptTable::Key& key) const {
    return table_->find(key)->status->phase();
  }
  bool run_until_phase(v1::AttemptPhase wanted) {
    return run_until([&] { return phase(key_) == wanted; });
  }

  TempDir dir_;
  wire::Log log_{{wire::LogLevel::Off, wire::LogFormat::Text, ""}};
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<AttemptTable> table_;
  const AttemptTable::Key key_ = *key_of({"lease-3", 0, 1});
  int notices_ = 0;
  int log_notices_ = 0;
};

TEST_F(AttemptTableTest, AShimIsStartedHeardStoppedAndForgotten) {
  ASSERT_TRUE(start(key_).ok());
  ASSERT_TRUE(run_until_phase(v1::ATTEMPT_PHASE_RUNNING));
  ASSERT_TRUE(run_until([this] { return log_notices_ > 0; }));
  EXPECT_TRUE(table_->look_for_shim(key_));
  EXPECT_EQ(table_->observed()[0],
            (agent_core::ObservedAttempt{
                key_, agent_core::Phase::Running, true, false, Instant(5000), false, {"GPU-1"}}));
  table_->update_want(key_, Instant(9000), true);
  ASSERT_TRUE(run_until_phase(v1::ATTEMPT_PHASE_ENDED));
  ASSERT_TRUE(run_until([this] { return !table_->look_for_shim(key_); }));
  table_->set_log_complete(key_);
  EXPECT_TRUE(table_->find(key_)->status->log_complete());
  table_->forget(key_);
  EXPECT_TRUE(table_->all().empty());
  EXPECT_TRUE(list_attempts(dir_.path()).empty());
}

TEST_F(AttemptTableTest, AStartIsAMatterOfMilliseconds) {
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(start(key_).ok());
  const auto took = std::chrono::steady_clock::now() - before;
  // 5 ms on an idle machine; the bar here only catches a wait.
  EXPECT_LT(took, milliseconds(500));
  ASSERT_TRUE(run_until_phase(v1::ATTEMPT_PHASE_RUNNING));
}

TEST_F(AttemptTableTest, TheNextAgentTakesUpALivingShim) {
  ASSERT_TRUE(start(key_).ok());
  ASSERT_TRUE(run_until_phase(v1::ATTEMPT_PHASE_RUNNING));
  restart();
  ASSERT_EQ(table_->all().size(), 1u);
  EXPECT_EQ(phase(key_), v1::ATTEMPT_PHASE_RUNNING);
  EXPECT_TRUE(table_->find(key_)->shim_alive);
  EXPECT_EQ(table_->find(key_)->gpu_uuids, std::vector<std::string>{"GPU-1"});
  EXPECT_EQ(table_->find(key_)->want_lease_end, Instant(5000));
  table_->update_want(key_, Instant(5000), true);
  ASSERT_TRUE(run_until_phase(v1::ATTEMPT_PHASE_ENDED));
}

TEST_F(AttemptTableTest, ADeadShimIsNoticedAndReplacedByOne) {
  ASSERT_TRUE(start(key_).ok());
  ASSERT_TRUE(run_until_phase(v1::ATTEMPT_PHASE_RUNNING));
  restart();
  // The lock file of a shim that was killed: held by nobody.
  std::filesystem::remove(table_->find(key_)->dir.lock_path());
  table_->look();
  EXPECT_FALSE(table_->find(key_)->shim_alive);
  table_->start_shim(key_);
  ASSERT_TRUE(run_until([this] { return table_->find(key_)->dir.shim_alive(); }));
}

TEST_F(AttemptTableTest, WhatCannotStartIsKeptAsEnded) {
  table_->fail(key_, spec("lease-3"), v1::END_REASON_START_FAILED, "no such file");
  EXPECT_EQ(notices_, 1);
  restart();
  ASSERT_EQ(table_->all().size(), 1u);
  EXPECT_EQ(phase(key_), v1::ATTEMPT_PHASE_ENDED);
  EXPECT_EQ(table_->find(key_)->status->end_reason(), v1::END_REASON_START_FAILED);
  EXPECT_EQ(table_->find(key_)->status->detail(), "no such file");
}

TEST_F(AttemptTableTest, OneWhoseFilesAreFetchedIsKnownAndCanBeDropped) {
  table_->expect(key_, spec("lease-3"));
  table_->set_progress(key_, "files: 3 to fetch");
  EXPECT_EQ(notices_, 1);
  EXPECT_TRUE(table_->observed()[0].shim_alive);
  EXPECT_TRUE(list_attempts(dir_.path()).empty());
  table_->update_want(key_, Instant(5000), true);
  EXPECT_TRUE(table_->all().empty());
}

TEST_F(AttemptTableTest, AFolderWithoutAnOrderIsRemoved) {
  ASSERT_TRUE(AttemptDir(dir_.path(), {"lease-9", 0, 1}).create().ok());
  restart();
  EXPECT_TRUE(table_->all().empty());
  EXPECT_TRUE(list_attempts(dir_.path()).empty());
}

}  // namespace
}  // namespace bmgpu::agent
