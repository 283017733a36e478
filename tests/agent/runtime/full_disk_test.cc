// A node whose disk is full: running jobs end as they should and are reported, new ones are refused
// with words that name the node. With a real podman, as root.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "agent/host/facts.h"
#include "agent/runtime/files.h"
#include "agent/runtime/node_fixture.h"

namespace bmgpu::agent {
namespace {

using std::chrono::seconds;

class FullDiskTest : public testing::Test {
 protected:
  // Not one byte is left, which an ordinary file shows.
  void fill() {
    const Fd fd(::open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string page(4096, 'x');
    while (::write(fd.get(), page.data(), page.size()) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC);
    ASSERT_EQ(write_file(node_.state_dir() + "/control", "x").error().code,
              ErrorCode::ResourceExhausted);
  }
  void make_room() { ASSERT_EQ(::unlink(filler().c_str()), 0); }
  std::string filler() const { return node_.state_dir() + "/filler"; }
  AttemptDir running(const std::string& script, seconds lease = seconds(3600)) {
    const AttemptDir dir = node_.start(node_.spec(script, lease));
    EXPECT_TRUE(node_.wait_for(dir, v1::ATTEMPT_PHASE_RUNNING));
    EXPECT_EQ(dir.read_status()->phase(), v1::ATTEMPT_PHASE_RUNNING) << dir.read_status()->detail();
    return dir;
  }

  TestNode node_{"node-1", 48};
};

TEST_F(FullDiskTest, ARunningJobCanBeStopped) {
  const AttemptDir dir = running("sleep 1000");
  fill();
  v1::ShimWant want;
  want.set_stop(true);
  ASSERT_TRUE(dir.write_want(want).ok());
  const v1::AttemptStatus status = node_.ended(dir);
  EXPECT_EQ(status.end_reason(), v1::END_REASON_STOPPED);
  EXPECT_GE(status.ended_unix_ms(), status.running_since_unix_ms());
  make_room();
}

TEST_F(FullDiskTest, ARunningJobEndsAtItsLeasesEnd) {
  const AttemptDir dir = running("sleep 1000", seconds(4));
  fill();
  const v1::AttemptStatus status = node_.ended(dir);
  EXPECT_EQ(status.end_reason(), v1::END_REASON_TIME_UP);
  EXPECT_LE(status.ended_unix_ms(), dir.read_order()->spec().lease_end_unix_ms() + 6000);
  make_room();
}

TEST_F(FullDiskTest, TheExitCodeOfAJobIsKept) {
  const AttemptDir dir = running("trap 'exit 5' USR1; while :; do sleep 0.05; done");
  fill();
  for (const int pid : node_.job_pids(dir)) {
    const Result<std::string> name = read_file("/proc/" + std::to_string(pid) + "/comm");
    if (name.ok() && *name == "sh\n") {
      ::kill(pid, SIGUSR1);
    }
  }
  const v1::AttemptStatus status = node_.ended(dir);
  EXPECT_EQ(status.end_reason(), v1::END_REASON_JOB_EXITED) << status.detail();
  EXPECT_EQ(status.exit_code(), 5);
  make_room();
}

TEST_F(FullDiskTest, ANewJobIsRefusedAndTheNodeIsNamed) {
  const v1::ShimOrder order = node_.order(node_.spec("echo ran"), {});
  const AttemptDir dir(node_.state_dir(), AttemptName{order.spec().lease(), 0, 1});
  ASSERT_TRUE(dir.create().ok());
  ASSERT_TRUE(dir.write_order(order).ok());
  fill();
  const AttemptDir none(node_.state_dir(), AttemptName{"lease-99", 0, 1});
  EXPECT_EQ(none.create().error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(none.remove().ok());
  node_.spawn(dir);
  const v1::AttemptStatus status = node_.ended(dir);
  EXPECT_EQ(status.end_reason(), v1::END_REASON_START_FAILED);
  EXPECT_NE(status.detail().find("node-1"), std::string::npos) << status.detail();
  EXPECT_EQ(status.running_since_unix_ms(), 0);
  EXPECT_EQ(node_.log(dir), "");
  make_room();
  // What the engine made but could not remove on a full disk is removed by the agent.
  const Result<std::vector<ContainerInfo>> strays = node_.runtime().containers();
  ASSERT_TRUE(strays.ok()) << strays.error().message;
  for (const ContainerInfo& stray : *strays) {
    EXPECT_TRUE(node_.runtime().remove_orphan(stray).ok()) << stray.name;
  }
  // The control: with room it runs.
  const AttemptDir again = node_.start(node_.spec("echo ran"));
  EXPECT_EQ(node_.ended(again).end_reason(), v1::END_REASON_JOB_EXITED);
  EXPECT_EQ(node_.log(again), "ran\n");
}

TEST_F(FullDiskTest, AFileOfAnAttemptIsReplacedAgainAndAgain) {
  const AttemptDir dir(node_.state_dir(), AttemptName{"lease-98", 0, 1});
  ASSERT_TRUE(dir.create().ok());
  fill();
  for (const std::int64_t end :
       {std::int64_t{5}, std::int64_t{1'700'000'000'000}, std::int64_t{6}}) {
    v1::ShimWant want;
    want.set_lease_end_unix_ms(end);
    EXPECT_TRUE(dir.write_want(want).ok());
    EXPECT_EQ(dir.read_want()->lease_end_unix_ms(), end);
  }
  make_room();
  EXPECT_TRUE(dir.remove().ok());
}

}  // namespace
}  // namespace bmgpu::agent
