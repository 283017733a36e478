// A podman service that dies while a job is prepared: the host's fault, so the job starts all the
// same. With a real podman, as root.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "agent/host/facts.h"
#include "agent/runtime/engine_proxy.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/service.h"

namespace bmgpu::agent {
namespace {

using Moment = EngineProxy::Plan::Moment;

class EngineTest : public testing::Test {
 protected:
  // Runs a job whose engine dies as planned, to its end.
  v1::AttemptStatus run(EngineProxy::Plan plan, const std::string& script = "echo began; exit 4") {
    v1::ShimOrder order = node_.order(node_.spec(script), {1});
    const std::string run_dir = dir_.file("run-" + order.spec().lease());
    EngineProxy proxy(node_.runtime().facts(), run_dir, std::move(plan));
    order.mutable_runtime()->set_run_dir(run_dir);
    attempt_ = std::make_unique<AttemptDir>(node_.start_order(order));
    const v1::AttemptStatus status = node_.ended(*attempt_);
    kills_ = proxy.kills();
    EXPECT_EQ(node_.leftovers(), "");
    return status;
  }
  void expect_it_ran(EngineProxy::Plan plan) {
    const v1::AttemptStatus status = run(std::move(plan));
    EXPECT_EQ(v1::EndReason_Name(status.end_reason()), "END_REASON_JOB_EXITED")
        << status.detail() << "\n"
        << *read_file(attempt_->file("shim.log"));
    EXPECT_EQ(status.exit_code(), 4);
    EXPECT_EQ(node_.log(*attempt_), "began\n");
    EXPECT_EQ(kills_, 1);  // the control: the engine did die
    // The monitor of a removed container needs some milliseconds to leave.
    EXPECT_TRUE(eventually([this] { return processes_of_job().empty(); }));
  }
  // The engine has the storage of a container of that name, if not yet the container.
  bool in_storage() const {
    const Result<std::string> text =
        read_file(node_.runtime_root() + "/overlay-containers/containers.json");
    return text.ok() && text->find("bm-00000000000000aa-lease-") != std::string::npos;
  }
  // Of the programs that belong to a container of ours: its monitor, its process 1.
  std::vector<std::string> processes_of_job() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const Result<std::string> command = read_file(entry.path().string() + "/cmdline");
      if (command.ok() && command->find("conmon") != std::string::npos &&
          command->find(node_.runtime_root()) != std::string::npos &&
          command->find("bm-00000000000000aa-lease-") != std::string::npos) {
        found.push_back(*command);
      }
    }
    return found;
  }
  bool running() const {
    for (const AttemptName& name : list_attempts(node_.state_dir())) {
      const Result<v1::AttemptStatus> status = AttemptDir(node_.state_dir(), name).read_status();
      if (status.ok() && status->phase() == v1::ATTEMPT_PHASE_RUNNING) {
        return true;
      }
    }
    return false;
  }

  TempDir dir_;
  TestNode node_;
  std::unique_ptr<AttemptDir> attempt_;
  int kills_ = 0;
};

TEST_F(EngineTest, KilledWhileTheImageIsLookedForTheJobStarts) {
  expect_it_ran({"/exists", Moment::Unsent});
}
TEST_F(EngineTest, KilledBeforeTheContainerIsCreatedTheJobStarts) {
  expect_it_ran({"containers/create", Moment::Unsent});
}
TEST_F(EngineTest, KilledWhileTheContainerIsCreatedTheJobStarts) {
  expect_it_ran({"containers/create", Moment::Sent, [this] { return in_storage(); }});
}
TEST_F(EngineTest, KilledWithTheContainerCreatedAndNobodyToldTheJobStarts) {
  expect_it_ran({"containers/create", Moment::Answered});
}
TEST_F(EngineTest, KilledBetweenCreateAndStartTheJobStarts) {
  expect_it_ran({"/start", Moment::Unsent});
}
TEST_F(EngineTest, KilledWhileTheContainerIsStartedTheJobStarts) {
  expect_it_ran({"/start", Moment::Sent, [this] { return !processes_of_job().empty(); }});
}
TEST_F(EngineTest, KilledWithTheContainerStartedAndNobodyToldTheJobStarts) {
  expect_it_ran({"/start", Moment::Answered});
}

TEST_F(EngineTest, KilledWhenTheJobRunsAlreadyTheJobRunsOn) {
  const v1::AttemptStatus status =
      run({"/start", Moment::Sent, [this] { return running(); }}, "echo began; sleep 2; exit 4");
  EXPECT_EQ(v1::EndReason_Name(status.end_reason()), "END_REASON_JOB_EXITED")
      << status.detail() << "\n"
      << *read_file(attempt_->file("shim.log"));
  EXPECT_EQ(status.exit_code(), 4) << *read_file(attempt_->file("shim.log"));
  EXPECT_EQ(node_.log(*attempt_), "began\n");
  EXPECT_EQ(kills_, 1);
}

TEST_F(EngineTest, AnEngineThatDiesEachTimeIsGivenUpAndNamesTheHost) {
  const v1::AttemptStatus status =
      run({"containers/create", Moment::Unsent, [] { return true; }, 1000});
  EXPECT_EQ(v1::EndReason_Name(status.end_reason()), "END_REASON_START_FAILED");
  EXPECT_EQ(status.detail(),
            "the container engine of node-1 failed (not the job; tried 8 times): the container "
            "engine closed the connection");
  EXPECT_EQ(status.running_since_unix_ms(), 0);
  EXPECT_EQ(kills_, 8);
}

TEST_F(EngineTest, TheServiceWorksInItsOwnFolder) {
  const Result<int> service = service_pid(node_.runtime().facts());
  ASSERT_TRUE(service.ok());
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(*service) + "/cwd"),
            std::filesystem::canonical(node_.runtime().facts().run_dir()));
  // Its children write where they are: conmon notes a memory limit that was hit in a file `oom`.
  const AttemptDir dir = node_.start(node_.spec("awk 'BEGIN { s = \"x\"; while (1) s = s s }'"));
  EXPECT_EQ(node_.ended(dir).end_reason(), v1::END_REASON_OUT_OF_MEMORY);
  EXPECT_FALSE(std::filesystem::exists("oom"));
}

}  // namespace
}  // namespace bmgpu::agent
