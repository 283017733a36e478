// The program bmcli against a real bmd over TLS, and a node that is only protocol.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "integration/market_fixture.h"

extern char** environ;

namespace bmgpu::integration {
namespace {

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class BmcliTest : public MarketTest {
 protected:
  BmcliTest() : MarketTest("tls: {mode: auto}\nimages: {\"pytorch:2.0\": \"localhost/p:2.0\"}") {}

  void SetUp() override {
    MarketTest::SetUp();
    const Ran ran = bmcli({"login", "--state-dir", bmd.state_dir()});
    ASSERT_EQ(ran.code, 0) << ran.err;
  }

  std::string read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  Ran bmcli(std::vector<std::string> words) {
    const std::string out = bmd.file("out");
    const std::string err = bmd.file("err");
    words.insert(words.begin(), {BMCLI_PROGRAM, "--config", bmd.file("bmcli.yaml")});
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), kFlags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), kFlags, 0600);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, BMCLI_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(out), read(err)};
  }
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(BmcliTest, DoctorIsContentAndTheConfigurationIsPrivate) {
  struct stat facts {};
  ASSERT_EQ(::stat(bmd.file("bmcli.yaml").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  const Ran ran = bmcli({"doctor", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_FALSE(holds(ran.out, "\"failed\"")) << ran.out;
  EXPECT_FALSE(holds(ran.out, "\"warning\"")) << ran.out;
}

TEST_F(BmcliTest, TheManualsLinesWorkAsWritten) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const Ran list = bmcli({"list", "--gpu=A100", "--min-mem=40G"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_TRUE(holds(list.out, "A100 80GB PCIe")) << list.out;
  EXPECT_TRUE(holds(list.err, "mem>=40GiB (removed 0)")) << list.err;

  const Ran run = bmcli({"run", "-g", "2", "--duration", "2h", "--image", "pytorch:2.0",
                         "--command", "python train.py", "-d"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(holds(run.err, "per GPU-hour")) << run.err;
  const std::string id = run.out.substr(0, run.out.find('\n'));
  EXPECT_EQ(bmcli({"wait", id, "--for", "running", "--timeout", "20s"}).code, 0);
  EXPECT_TRUE(holds(bmcli({"ps"}).out, "running"));
  EXPECT_EQ(bmcli({"extend", id, "--by", "30m"}).code, 0);

  EXPECT_EQ(bmcli({"stop", id}).code, 0);
  const Ran ended = bmcli({"wait", id, "--timeout", "20s", "--json"});
  EXPECT_EQ(ended.code, 6);
  EXPECT_TRUE(holds(ended.out, "\"end_reason\":\"stopped\"")) << ended.out;
  EXPECT_EQ(bmcli({"stop", id}).code, 0);
}

TEST_F(BmcliTest, LogsComeLineByLineUntilComplete) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  const Ran run = bmcli({"run", "-g", "1", "--duration", "1h", "--image", "a", "-d"});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string id = run.out.substr(0, run.out.find('\n'));
  ASSERT_EQ(bmcli({"wait", id, "--for", "running", "--timeout", "20s"}).code, 0);
  agent.send_log("lease-" + id.substr(id.find('-') + 1), 1, 3, true);
  EXPECT_EQ(bmcli({"logs", "-f", id}).out, "line 1\nline 2\nline 3\n");
  EXPECT_EQ(bmcli({"logs", "--tail", "1", id}).out, "line 3\n");
}

TEST_F(BmcliTest, BadInputIsRefusedWithItsExitCode) {
  EXPECT_EQ(bmcli({"list", "gpuu=A100"}).code, 2);
  EXPECT_EQ(bmcli({"list", "--min-mem=40X"}).code, 2);
  EXPECT_EQ(bmcli({"run", "--duration", "1h", "--image", "a;b"}).code, 2);
  EXPECT_EQ(bmcli({"stop", "order-999"}).code, 3);
  EXPECT_EQ(bmcli({"exec", "order-999", "ls"}).code, 3);
  EXPECT_EQ(bmcli({"run", "--duration", "1h", "--image", "a", "--gpu", "Z9", "--json"}).code, 2);
  ASSERT_EQ(bmd.stop(), 0);
  const Ran gone = bmcli({"ps", "--json"});
  EXPECT_EQ(gone.code, 5);
  EXPECT_TRUE(holds(gone.out, "\"code\":\"unavailable\"")) << gone.out;
}

}  // namespace
}  // namespace bmgpu::integration
