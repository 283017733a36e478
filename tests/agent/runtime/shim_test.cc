// A shim with a real podman, from the order to the exit code. Needs root.
#include "agent/runtime/shim.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <map>

#include "agent/host/facts.h"
#include "agent/runtime/files.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/service.h"

namespace bmgpu::agent {
namespace {

using std::chrono::seconds;
using testing::Test;

class ShimTest : public Test {
 protected:
  // Ended, nothing left, with that reason.
  v1::AttemptStatus expect_end(const AttemptDir& dir, v1::EndReason reason) {
    v1::AttemptStatus status = node_.ended(dir);
    EXPECT_EQ(v1::EndReason_Name(status.end_reason()), v1::EndReason_Name(reason))
        << status.detail();
    EXPECT_EQ(node_.leftovers(), "");
    return status;
  }
  void running(const AttemptDir& dir) {
    ASSERT_TRUE(node_.wait_for(dir, v1::ATTEMPT_PHASE_RUNNING));
    ASSERT_EQ(dir.read_status()->phase(), v1::ATTEMPT_PHASE_RUNNING) << dir.read_status()->detail();
  }
  bool logged(const AttemptDir& dir, const std::string& text) {
    return eventually([&] { return node_.log(dir).find(text) != std::string::npos; });
  }
  void stop(const AttemptDir& dir) {
    v1::ShimWant want;
    want.set_stop(true);
    ASSERT_TRUE(dir.write_want(want).ok());
  }
  TestNode node_;
};

TEST_F(ShimTest, RunsAJobAndReportsItsExitCode) {
  const AttemptDir dir = node_.start(node_.spec("echo out; printf tail; exit 3"));
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_JOB_EXITED);
  EXPECT_EQ(status.exit_code(), 3);
  EXPECT_EQ(node_.log(dir), "out\ntail");
  EXPECT_GT(status.running_since_unix_ms(), 0);
  EXPECT_GE(status.ended_unix_ms(), status.running_since_unix_ms());
  EXPECT_EQ(status.incarnation(), 7u);
}

TEST_F(ShimTest, TheJobHoldsExactlyItsGpus) {
  const AttemptDir dir = node_.start(
      node_.spec("echo $BMGPU_COUNT $BM_GPUS $NVIDIA_VISIBLE_DEVICES ${CUDA_VISIBLE_DEVICES-unset} "
                 "$IMAGE_SAYS;"
                 "ls /dev | grep nvidia; for i in 0 1 2 3; do dd if=/dev/nvidia$i count=1; done"),
      {1, 3});
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_JOB_EXITED);
  EXPECT_EQ(status.gpus_seen(), 2u);
  const std::string log = node_.log(dir);
  EXPECT_NE(log.find("2 GPU-1,GPU-3 void unset hello\nnvidia1\nnvidia3\n"), std::string::npos)
      << log;
  EXPECT_NE(log.find("/dev/nvidia1': No such device or address"), std::string::npos) << log;
  EXPECT_NE(log.find("/dev/nvidia0': No such file or directory"), std::string::npos) << log;
}

TEST_F(ShimTest, AnotherDeviceSetThanLeasedNeverRunsTheJob) {
  v1::ShimOrder order = node_.order(node_.spec("echo ran"), {0, 1});
  order.mutable_devices(1)->set_minor(2);  // the lease says 0 and 2, the container gets 0 and 1
  const AttemptDir dir = node_.start_order(order);
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_DEVICE_CHECK_FAILED);
  EXPECT_NE(status.detail().find("seen inside the container: 0, 1; leased: 0, 2"),
            std::string::npos)
      << status.detail();
  EXPECT_EQ(status.running_since_unix_ms(), 0);
  EXPECT_EQ(node_.log(dir), "");
}

TEST_F(ShimTest, AGpuThatTheEngineDoesNotKnowFailsTheDeviceCheck) {
  v1::ShimOrder order = node_.order(node_.spec("echo ran"), {0});
  order.mutable_devices(0)->set_cdi_name("bmgpu.test/none=GPU-9");
  expect_end(node_.start_order(order), v1::END_REASON_DEVICE_CHECK_FAILED);
}

TEST_F(ShimTest, LimitsHold) {
  const AttemptDir dir = node_.start(node_.spec(
      "ulimit -n; grep -c . /proc/mounts >/dev/null; grep CapEff /proc/self/status;"
      "grep NoNewPrivs /proc/self/status; grep Seccomp: /proc/self/status;"
      "touch /x 2>&1; touch /tmp/a /workspace/b /scratch/c && echo writable;"
      "dd if=/dev/zero of=/scratch/big bs=1M count=64 2>&1 | grep -o 'No space left';"
      "mknod /tmp/n c 195 0 2>&1; i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done"));
  expect_end(dir, v1::END_REASON_JOB_EXITED);
  const std::string log = node_.log(dir);
  EXPECT_NE(log.find("can't fork"), std::string::npos) << log;
  EXPECT_NE(log.find("CapEff:\t0000000000000000"), std::string::npos) << log;
  EXPECT_NE(log.find("NoNewPrivs:\t1"), std::string::npos) << log;
  EXPECT_NE(log.find("Seccomp:\t2"), std::string::npos) << log;
  EXPECT_NE(log.find("touch: /x: Read-only file system"), std::string::npos) << log;
  EXPECT_NE(log.find("writable"), std::string::npos) << log;
  EXPECT_NE(log.find("No space left"), std::string::npos) << log;
  EXPECT_NE(log.find("mknod: /tmp/n: Operation not permitted"), std::string::npos) << log;
}

TEST_F(ShimTest, EndsAtTheLeasesEndWithNobodyElseAlive) {
  const AttemptDir dir = node_.start(node_.spec(
      "exec 2>/dev/null; trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.05; done",
      seconds(2)));
  running(dir);
  const std::int64_t end = dir.read_order()->spec().lease_end_unix_ms();
  // Not even podman's service: whoever needs it starts it.
  ASSERT_TRUE(stop_service(node_.runtime().facts(), seconds(10)).ok());
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_TIME_UP);
  EXPECT_EQ(status.exit_code(), 9);
  EXPECT_EQ(node_.log(dir), "up\nterm\n");
  EXPECT_GE(status.ended_unix_ms(), end);
  EXPECT_LE(status.ended_unix_ms(), end + 1000);
}

TEST_F(ShimTest, AJobThatIgnoresTermIsKilledAfterTheGrace) {
  v1::ShimOrder order = node_.order(
      node_.spec("trap '' TERM; echo up; while :; do sleep 0.05; done", seconds(2)), {});
  order.set_stop_grace_ms(300);
  const AttemptDir dir = node_.start_order(order);
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_TIME_UP);
  EXPECT_FALSE(status.has_exit_code());
  EXPECT_GE(status.ended_unix_ms(), order.spec().lease_end_unix_ms() + 300);
}

TEST_F(ShimTest, BmInitEndsTheJobWhenItsShimIsDead) {
  const AttemptDir dir = node_.start(node_.spec(
      "exec 2>/dev/null; trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.05; done",
      seconds(3)));
  running(dir);
  const int pid = node_.container_pid(dir);
  ASSERT_GT(pid, 0);
  node_.kill_shim(dir);
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }, seconds(20)));
  EXPECT_GE(unix_ms(), dir.read_order()->spec().lease_end_unix_ms());
  EXPECT_EQ(node_.log(dir), "up\nterm\n");
  node_.spawn(dir);  // the next one only clears up
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_TIME_UP);
  EXPECT_EQ(status.exit_code(), 9);
}

TEST_F(ShimTest, AShimThatComesAfterKill9AdoptsTheJob) {
  const AttemptDir dir = node_.start(
      node_.spec("echo up; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo bye; exit 5"), {2});
  running(dir);
  ASSERT_TRUE(logged(dir, "up"));
  const v1::AttemptStatus before = *dir.read_status();
  const int pid = node_.container_pid(dir);
  node_.kill_shim(dir);
  node_.spawn(dir);
  ASSERT_TRUE(eventually([&] { return dir.shim_alive(); }));
  ASSERT_TRUE(write_file(dir.file("scratch/tmp/go"), "").ok());
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_JOB_EXITED);
  EXPECT_GT(pid, 0);
  EXPECT_EQ(status.exit_code(), 5);
  EXPECT_EQ(status.running_since_unix_ms(), before.running_since_unix_ms());
  EXPECT_EQ(status.gpus_seen(), 1u);
  EXPECT_EQ(node_.log(dir), "up\nbye\n");  // once: it did not run again
}

TEST_F(ShimTest, AnAdoptedJobKeepsItsDeadlineAndItsExitCodeFromBeforeTheAdoption) {
  const AttemptDir late =
      node_.start(node_.spec("echo up; while :; do sleep 0.05; done", seconds(4)));
  const AttemptDir over =
      node_.start(node_.spec("while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 6"));
  running(late);
  running(over);
  node_.kill_shim(late);
  node_.kill_shim(over);
  const int pid = node_.container_pid(over);
  ASSERT_TRUE(write_file(over.file("scratch/tmp/go"), "").ok());
  ASSERT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
  node_.spawn(late);
  node_.spawn(over);
  const v1::AttemptStatus status = node_.ended(late);
  EXPECT_EQ(status.end_reason(), v1::END_REASON_TIME_UP);
  const std::int64_t end = late.read_order()->spec().lease_end_unix_ms();
  EXPECT_GE(status.ended_unix_ms(), end);
  EXPECT_LE(status.ended_unix_ms(), end + 6000);
  EXPECT_EQ(expect_end(over, v1::END_REASON_JOB_EXITED).exit_code(), 6);
}

TEST_F(ShimTest, KilledAtAnyMomentItsSuccessorBringsTheJobToItsEnd) {
  // The marker shows how often the job began: never twice, and always once in the end.
  for (int step = 0; step < 12; ++step) {
    const AttemptDir dir = node_.start(node_.spec("echo began; sleep 0.2; exit 4"));
    const std::int64_t until = boottime_ms() + step * 25;
    ASSERT_TRUE(eventually([&] { return dir.shim_alive() && boottime_ms() >= until; }));
    ::kill(node_.shim_pid(dir), SIGKILL);
    ASSERT_TRUE(eventually([&] { return !dir.shim_alive(); }));
    node_.spawn(dir);
    const v1::AttemptStatus status = node_.ended(dir);
    EXPECT_EQ(status.end_reason(), v1::END_REASON_JOB_EXITED)
        << status.detail() << " step " << step;
    EXPECT_EQ(status.exit_code(), 4) << "step " << step;
    EXPECT_EQ(node_.log(dir), "began\n") << "step " << step;
  }
  EXPECT_EQ(node_.leftovers(), "");
}

TEST_F(ShimTest, TwoShimsNeverRunOneAttempt) {
  const AttemptDir dir = node_.start(node_.spec("echo once; sleep 0.3"));
  for (int i = 0; i < 5; ++i) {
    node_.spawn(dir);
  }
  expect_end(dir, v1::END_REASON_JOB_EXITED);
  EXPECT_EQ(node_.log(dir), "once\n");
}

TEST_F(ShimTest, StopsOnWant) {
  const AttemptDir dir = node_.start(node_.spec(
      "exec 2>/dev/null; trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.05; done"));
  running(dir);
  ASSERT_TRUE(logged(dir, "up"));
  stop(dir);
  EXPECT_EQ(expect_end(dir, v1::END_REASON_STOPPED).exit_code(), 0);
  EXPECT_EQ(node_.log(dir), "up\nterm\n");
}

TEST_F(ShimTest, WhatShallStopBeforeItBeganNeverRuns) {
  const v1::ShimOrder order = node_.order(node_.spec("echo ran"), {});
  const AttemptDir dir(node_.state_dir(), AttemptName{order.spec().lease(), 0, 1});
  ASSERT_TRUE(dir.create().ok());
  stop(dir);
  node_.start_order(order);
  EXPECT_EQ(expect_end(dir, v1::END_REASON_STOPPED).running_since_unix_ms(), 0);
  EXPECT_EQ(node_.log(dir), "");
}

TEST_F(ShimTest, ALeaseThatIsOverNeverRuns) {
  const AttemptDir dir = node_.start(node_.spec("echo ran", seconds(-1)));
  EXPECT_EQ(expect_end(dir, v1::END_REASON_TIME_UP).running_since_unix_ms(), 0);
  EXPECT_EQ(node_.log(dir), "");
}

TEST_F(ShimTest, AnExtensionMovesTheEnd) {
  const AttemptDir dir = node_.start(node_.spec(
      "while [ ! -e /tmp/go ]; do sleep 0.05; done; cat /.bm/gate/deadline", seconds(2)));
  running(dir);
  const std::int64_t end = dir.read_order()->spec().lease_end_unix_ms();
  v1::ShimWant want;
  want.set_lease_end_unix_ms(end + 3'600'000);
  ASSERT_TRUE(dir.write_want(want).ok());
  ASSERT_TRUE(eventually([&] { return unix_ms() > end + 700; }));
  EXPECT_EQ(dir.read_status()->phase(), v1::ATTEMPT_PHASE_RUNNING);
  ASSERT_TRUE(write_file(dir.file("scratch/tmp/go"), "").ok());
  EXPECT_EQ(expect_end(dir, v1::END_REASON_JOB_EXITED).exit_code(), 0);
  EXPECT_NE(node_.log(dir).find(" " + std::to_string(end + 3'600'000)), std::string::npos);
}

TEST_F(ShimTest, AFrozenJobStandsStillAndIsKilledWithoutOneMoreLine) {
  const AttemptDir dir = node_.start(
      node_.spec("for i in 1 2 3; do (while :; do echo x >>/tmp/n; done) & done; sleep 1000"));
  running(dir);
  const auto size = [&] { return read_file(dir.file("scratch/tmp/n"), 1 << 30)->size(); };
  ASSERT_TRUE(eventually([&] { return read_file(dir.file("scratch/tmp/n"), 1 << 30).ok(); }));
  v1::ShimWant want;
  want.add_freeze(v1::FREEZE_REASON_FENCE);
  ASSERT_TRUE(dir.write_want(want).ok());
  std::size_t frozen = 0;
  ASSERT_TRUE(eventually([&] {
    const std::size_t now = size();
    const bool still = now == frozen;
    frozen = now;
    const std::int64_t until = boottime_ms() + 100;
    return eventually([&] { return boottime_ms() > until; }) && still && size() == frozen;
  }));
  want.set_stop(true);
  ASSERT_TRUE(dir.write_want(want).ok());
  // The scratch file system goes with the job: its last state is seen through an open file.
  const Fd file(::open(dir.file("scratch/tmp/n").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  node_.ended(dir);
  EXPECT_EQ(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), frozen);
}

TEST_F(ShimTest, TheMemoryLimitIsNamedAsTheCause) {
  const AttemptDir dir =
      node_.start(node_.spec("awk 'BEGIN { s = \"x\"; while (1) s = s s }'; exit $?"));
  const v1::AttemptStatus status = expect_end(dir, v1::END_REASON_OUT_OF_MEMORY);
  EXPECT_EQ(status.exit_code(), 137);
}

TEST_F(ShimTest, AnUnknownCommandIsAStartFailure) {
  v1::AttemptSpec spec = node_.spec("");
  spec.mutable_job()->clear_command();
  spec.mutable_job()->add_command("no-such-program");
  const v1::AttemptStatus status = expect_end(node_.start(spec), v1::END_REASON_START_FAILED);
  EXPECT_EQ(status.detail(), "cannot run 'no-such-program': No such file or directory");
  EXPECT_FALSE(status.has_exit_code());
}

TEST_F(ShimTest, AMissingImageIsAStartFailureInTheEnginesWords) {
  v1::AttemptSpec spec = node_.spec("true");
  spec.mutable_job()->set_image("localhost/no-such-image:1");
  const v1::AttemptStatus status = expect_end(node_.start(spec), v1::END_REASON_START_FAILED);
  EXPECT_NE(status.detail().find("localhost/no-such-image:1"), std::string::npos)
      << status.detail();
}

TEST_F(ShimTest, AnOrderOfAnotherBootOnlyClearsUp) {
  v1::ShimOrder order = node_.order(node_.spec("echo ran"), {});
  order.set_boot_id("00000000-0000-0000-0000-000000000000");
  const AttemptDir dir = node_.start_order(order);
  expect_end(dir, v1::END_REASON_NODE_LOST);
  EXPECT_EQ(node_.log(dir), "");
}

TEST_F(ShimTest, TheWorkingDirectoryHoldsTheFilesAndIsWhereTheJobStarts) {
  const std::string hash(64, 'c');  // 32 bytes of 0xcc
  ASSERT_TRUE(write_file(node_.state_dir() + "/blobs/" + hash, "print(1)\n").ok());
  v1::AttemptSpec spec = node_.spec("echo $PWD; cat sub/a.py; cat link; echo $HOME; touch new");
  v1::WorkFile* file = spec.mutable_job()->add_workdir();
  file->set_path("sub/a.py");
  file->set_sha256(std::string(32, static_cast<char>(0xcc)));
  file->set_size(9);
  file->set_mode(0644);
  v1::WorkFile* link = spec.mutable_job()->add_workdir();
  link->set_path("link");
  link->set_link_target("sub/a.py");
  const AttemptDir dir = node_.start(spec);
  EXPECT_EQ(expect_end(dir, v1::END_REASON_JOB_EXITED).exit_code(), 0);
  EXPECT_EQ(node_.log(dir), "/workspace\nprint(1)\nprint(1)\n/scratch/home\n");
}

TEST_F(ShimTest, AnImagesUserOwnsTheWorkingDirectory) {
  const std::string hash(64, 'c');
  ASSERT_TRUE(write_file(node_.state_dir() + "/blobs/" + hash, "1").ok());
  v1::AttemptSpec spec =
      node_.spec("id -u; echo 2 >>a && cat a && touch sub/new /tmp/x /scratch/y ~/z && echo ok");
  spec.mutable_job()->set_image(kUserImage);
  for (const char* path : {"a", "sub/b"}) {
    v1::WorkFile* file = spec.mutable_job()->add_workdir();
    file->set_path(path);
    file->set_sha256(std::string(32, static_cast<char>(0xcc)));
    file->set_size(1);
    file->set_mode(0644);
  }
  const AttemptDir dir = node_.start(spec, {0});
  EXPECT_EQ(expect_end(dir, v1::END_REASON_JOB_EXITED).exit_code(), 0);
  EXPECT_EQ(node_.log(dir), "1000\n12\nok\n");
}

TEST_F(ShimTest, TheJobsOwnVariablesCountExceptForFacts) {
  v1::AttemptSpec spec = node_.spec("echo $A $HOME $CUDA_VISIBLE_DEVICES $BM_LEASE");
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"A", "b c"}, {"HOME", "/tmp"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"BM_LEASE", "mine"}}) {
    v1::EnvVar* variable = spec.mutable_job()->add_env();
    variable->set_name(name);
    variable->set_value(value);
  }
  const AttemptDir dir = node_.start(spec);
  expect_end(dir, v1::END_REASON_JOB_EXITED);
  EXPECT_EQ(node_.log(dir), "b c /tmp 0 lease-1\n");
}

TEST_F(ShimTest, NoLineOfALongLogIsLost) {
  const AttemptDir dir = node_.start(node_.spec("seq 1 20000; exit 1"));
  EXPECT_EQ(expect_end(dir, v1::END_REASON_JOB_EXITED).exit_code(), 1);
  std::string expected;
  for (int i = 1; i <= 20000; ++i) {
    expected += std::to_string(i) + "\n";
  }
  EXPECT_EQ(node_.log(dir), expected);
}

}  // namespace
}  // namespace bmgpu::agent
