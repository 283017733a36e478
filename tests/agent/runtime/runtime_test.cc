// The node's runtime with a real podman: probe, service, canary, orphans. Needs root.
#include "agent/runtime/runtime.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/files.h"
#include "agent/runtime/network.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/scratch.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RuntimeTest, ProbesOnceAndRemembers) {
  TestNode node;
  const v1::RuntimeFacts facts = node.runtime().facts();
  EXPECT_EQ(facts.podman_version().find_first_not_of("0123456789.-rcdev"), std::string::npos);
  EXPECT_TRUE(facts.oci_runtime() == "runc" || facts.oci_runtime() == "crun");
  EXPECT_FALSE(facts.cgroup().empty());
  EXPECT_GT(facts.nofile_max(), 0);
  const Result<int> service = service_pid(facts);
  ASSERT_TRUE(service.ok());
  Result<std::unique_ptr<Runtime>> second = Runtime::create(node.options());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->facts().SerializeAsString(), facts.SerializeAsString());
  EXPECT_EQ(*service_pid(facts), *service);  // the service was left running
  EXPECT_EQ((*second)->summary().find("podman "), 0u);
}

TEST(RuntimeTest, DoctorFindsThisMachineInOrder) {
  TestNode node;
  for (const DoctorCheck& check : node.runtime().doctor()) {
    EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
    EXPECT_EQ(check.advice, "");
  }
}

TEST(RuntimeTest, ListsTheSharedStoresImages) {
  TestNode node;
  const Result<std::vector<std::string>> images = node.runtime().images();
  ASSERT_TRUE(images.ok());
  EXPECT_EQ(*images, (std::vector<std::string>{kImage, kUserImage}));
}

TEST(RuntimeTest, TheCanaryNamesAFrozenEngineAndRecovers) {
  TestNode node;
  ASSERT_TRUE(node.runtime().canary(seconds(30)).ok());
  const Result<int> service = service_pid(node.runtime().facts());
  ASSERT_TRUE(service.ok());
  ASSERT_EQ(::kill(*service, SIGSTOP), 0);
  const Result<void> frozen = node.runtime().canary(milliseconds(300));
  ::kill(*service, SIGCONT);
  ASSERT_FALSE(frozen.ok());
  EXPECT_EQ(frozen.error().code, ErrorCode::Unavailable);
  EXPECT_NE(frozen.error().message.find("did not answer in time"), std::string::npos)
      << frozen.error().message;
  EXPECT_TRUE(node.runtime().canary(seconds(30)).ok());
}

TEST(RuntimeTest, CanariesAndFilesOfTheDeadAreRemovedAtTheStart) {
  TestNode node;
  const auto podman = [&](std::vector<std::string> words) {
    std::vector<std::string> command = podman_command(node.runtime().facts());
    command.insert(command.end(), words.begin(), words.end());
    const Result<std::string> out = run_ok(command, {seconds(30), "", 65536, -1});
    EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
    return out.ok() ? *out : "";
  };
  for (const char* name : {"bm-canary-1-1", "other"}) {
    podman({"create", "--name", name, "--network=none", "--ulimit=nofile=1024:1024",
            "--ulimit=nproc=1000:1000", "--label",
            std::string(name) == "other" ? "io.bmgpu.other=1" : "io.bmgpu.canary=1", kImage,
            "true"});
  }
  // A pid that is no process's any more.
  const pid_t gone = ::fork();
  if (gone == 0) {
    ::_exit(0);
  }
  ::waitpid(gone, nullptr, 0);
  const std::string dead = node.state_dir() + "/x.tmp." + std::to_string(gone) + ".1";
  const std::string living = node.state_dir() + "/x.tmp." + std::to_string(::getpid()) + ".1";
  ASSERT_TRUE(write_file(dead, "").ok());
  ASSERT_TRUE(write_file(living, "").ok());
  const Result<std::unique_ptr<Runtime>> next = Runtime::create(node.options());
  ASSERT_TRUE(next.ok());
  EXPECT_NE(::access(dead.c_str(), F_OK), 0);
  EXPECT_EQ(::access(living.c_str(), F_OK), 0);
  ASSERT_TRUE((*next)->containers().ok());
  EXPECT_EQ(podman({"ps", "--all", "--format", "{{.Names}}"}), "other\n");
  podman({"rm", "other"});
}

TEST(RuntimeTest, AServiceThatDiedIsStartedAgain) {
  TestNode node;
  const Result<int> service = service_pid(node.runtime().facts());
  ASSERT_TRUE(service.ok());
  ASSERT_EQ(::kill(*service, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return !service_pid(node.runtime().facts()).ok(); }));
  const Result<void> works = node.runtime().canary(seconds(30));
  ASSERT_TRUE(works.ok()) << works.error().message;
  EXPECT_NE(*service_pid(node.runtime().facts()), *service);
}

TEST(RuntimeTest, AMissingEngineIsToldAndChangesNothing) {
  const TempDir temp;
  RuntimeOptions options;
  options.state_dir = temp.file("state");
  options.podman = "no-such-podman";
  options.init_path = BM_INIT_PATH;
  options.run_dir = temp.file("run");
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok());
  const Result<void> canary = (*runtime)->canary(seconds(5));
  ASSERT_FALSE(canary.ok());
  EXPECT_NE(canary.error().message.find("no-such-podman is not installed"), std::string::npos);
  bool told = false;
  for (const DoctorCheck& check : (*runtime)->doctor()) {
    told = told || (check.name == "container engine" && !check.ok && !check.advice.empty());
  }
  EXPECT_TRUE(told);
  options.state_dir = "relative";
  EXPECT_EQ(Runtime::create(options).error().code, ErrorCode::InvalidArgument);
}

TEST(RuntimeTest, OrphansAreOursAloneAndAreRemoved) {
  TestNode node("node-1");
  const AttemptDir dir = node.start(node.spec("while :; do sleep 0.1; done"));
  ASSERT_TRUE(node.wait_for(dir, v1::ATTEMPT_PHASE_RUNNING));
  // A second agent with the same engine sees none of it.
  RuntimeOptions other = node.options();
  other.node = "node-2";
  const Result<std::unique_ptr<Runtime>> neighbour = Runtime::create(other);
  ASSERT_TRUE(neighbour.ok());
  EXPECT_TRUE((*neighbour)->containers()->empty());
  const Result<std::vector<ContainerInfo>> mine = node.runtime().containers();
  ASSERT_TRUE(mine.ok());
  ASSERT_EQ(mine->size(), 1u);
  EXPECT_EQ(mine->front().attempt.text(), "lease-1.0.1");
  EXPECT_EQ(mine->front().incarnation, 7u);
  EXPECT_TRUE(mine->front().running);
  const int pid = node.container_pid(dir);
  node.kill_shim(dir);
  ASSERT_TRUE(node.runtime().remove_orphan(mine->front()).ok());
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_TRUE(node.runtime().containers()->empty());
  node.spawn(dir);
  EXPECT_EQ(node.ended(dir).detail(), "its container was gone");
}

TEST(RuntimeTest, WhatIsMountedBelowAFolderIsDetachedAndNothingElse) {
  const TempDir temp;
  for (const char* name : {"ours", "ours/a b", "ours/a b/inner", "ours-not"}) {
    const std::string path = temp.file(name);
    ASSERT_TRUE(make_dirs(path).ok());
    ASSERT_EQ(::mount("none", path.c_str(), "tmpfs", 0, "size=64k"), 0) << path;
  }
  detach_mounts_below(temp.file("ours"));
  EXPECT_NE(::umount2(temp.file("ours/a b/inner").c_str(), 0), 0);
  EXPECT_NE(::umount2(temp.file("ours/a b").c_str(), 0), 0);
  EXPECT_EQ(::umount2(temp.file("ours").c_str(), 0), 0);
  EXPECT_EQ(::umount2(temp.file("ours-not").c_str(), 0), 0);
}

TEST(RuntimeTest, ScratchFilesAreKeptReady) {
  TestNode node;
  const std::string pool = node.state_dir() + "/scratch-pool";
  ASSERT_TRUE(node.runtime().refill_scratch({16, 32}, 2).ok());
  ASSERT_TRUE(node.runtime().refill_scratch({32}, 1).ok());
  EXPECT_NE(::access((pool + "/16").c_str(), F_OK), 0);
  const std::string image = node.state_dir() + "/one.img";
  const std::string target = node.state_dir() + "/one";
  ASSERT_TRUE(take_scratch(pool, 32, image).ok());
  ASSERT_TRUE(mount_scratch(image, target).ok());
  ASSERT_TRUE(write_file(target + "/x", "y").ok());
  ASSERT_TRUE(remove_scratch(image, target).ok());
  EXPECT_NE(::access(image.c_str(), F_OK), 0);
  ASSERT_TRUE(remove_scratch(image, target).ok());  // again is fine
  EXPECT_EQ(take_scratch(pool, 64, image).error().code, ErrorCode::NotFound);
}

TEST(RuntimeTest, ANatJobReachesNeitherAnotherJobNorTheHost) {
  TestNode node;
  v1::AttemptSpec server = node.spec("ip -4 addr show eth0; nc -l -p 7777 -e echo hello");
  server.mutable_job()->set_network(v1::NETWORK_MODE_NAT);
  const AttemptDir listening = node.start(server);
  ASSERT_TRUE(eventually([&] { return node.log(listening).find("inet ") != std::string::npos; }))
      << listening.read_status()->detail();
  const std::string log = node.log(listening);
  const std::size_t at = log.find("inet ") + 5;
  const std::string address = log.substr(at, log.find('/', at) - at);
  EXPECT_EQ(address.find("10.215."), 0u);
  v1::AttemptSpec client = node.spec("nc -w 1 " + address + " 7777 </dev/null; echo done $?");
  client.mutable_job()->set_network(v1::NETWORK_MODE_NAT);
  const AttemptDir asking = node.start(client);
  EXPECT_EQ(node.ended(asking).end_reason(), v1::END_REASON_JOB_EXITED);
  EXPECT_EQ(node.log(asking).find("hello"), std::string::npos) << node.log(asking);
  EXPECT_NE(node.log(asking).find("done"), std::string::npos);
  // From the host, which may, it answers: the listener was there.
  const Result<RunOutcome> reached = run({"busybox", "nc", "-w", "2", address, "7777"});
  ASSERT_TRUE(reached.ok());
  EXPECT_NE(reached->out.find("hello"), std::string::npos);
}

TEST(NetworkTest, ALinkBringsItsRulesWhateverBecameOfThem) {
  const TempDir temp;
  const std::string subnet = "10.217.0.0/16";
  const std::vector<std::string> list = {"nft", "list", "table", "inet", "bmgpu_10_217"};
  const std::vector<std::string> remove = {"nft", "delete", "table", "inet", "bmgpu_10_217"};
  ASSERT_TRUE(ensure_nat(subnet).ok());
  ASSERT_TRUE(run_ok(remove).ok());
  ASSERT_FALSE(run_ok(list).ok());
  ASSERT_TRUE(make_network(temp.file("netns"), subnet).ok());
  const Result<std::string> rules = run_ok(list);
  ASSERT_TRUE(rules.ok());
  EXPECT_NE(rules->find("oifname \"bmv*\" drop"), std::string::npos) << *rules;
  EXPECT_TRUE(remove_network(temp.file("netns")).ok());
  EXPECT_TRUE(run_ok(remove).ok());
}

TEST(NetworkTest, RefusesASubnetThatIsNone) {
  for (const char* subnet : {"", "10.215.0.0", "10.215.0.0/24", "10.2150.0.0/16", "a.b.0.0/16",
                             "10.215.1.0/16", "10.215.0.0/16; flush ruleset"}) {
    EXPECT_EQ(ensure_nat(subnet).error().code, ErrorCode::InvalidArgument) << subnet;
  }
}

}  // namespace
}  // namespace bmgpu::agent
