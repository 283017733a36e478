#include "agent/agent_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "agent/node_file.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/encoding.h"

namespace bmgpu::agent {

AgentProcess::AgentProcess(MarketProcess& market, const std::string& name) : market_(market) {
  const std::string kind = "bmgpu.test/a" + dir_.path().substr(dir_.path().rfind('-') + 1);
  std::filesystem::copy_file(SIM_PROFILE, dir_.file("gpus.yaml"));
  const std::string config =
      "state_dir: " + state_dir() +
      "\nnvml: {library: " SIM_LIBRARY ", sim_profile: " + dir_.file("gpus.yaml") +
      "}\nruntime: {image_stores: [" + busybox_store() +
      "], init_path: " BM_INIT_PATH "}\ncdi: {kind: " + kind +
      "}\nshare: {scratch_mib: 1024, memory_mib: 1024}\n";
  EXPECT_TRUE(write_file(dir_.file("agent.yaml"), config).ok());
  EXPECT_TRUE(write_file(dir_.file("token"), market.join_token(name)).ok());
  EXPECT_EQ(run({"join", "--token-file", dir_.file("token")}), 0) << said();
  start();
  EXPECT_TRUE(wait_until_offered());
}

std::vector<std::string> AgentProcess::commands() const {
  std::vector<std::string> commands;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const Result<std::string> command = read_file(entry.path().string() + "/cmdline");
    if (command && command->find(dir_.path()) != std::string::npos) {
      commands.push_back(command->substr(0, command->find(char{0})));
    }
  }
  return commands;
}

int AgentProcess::processes(const std::string& word) const {
  int count = 0;
  for (const std::string& command : commands()) {
    count += command.find(word) != std::string::npos ? 1 : 0;
  }
  return count;
}

AgentProcess::~AgentProcess() {
  if (agent_.pid() > 0) {
    EXPECT_EQ(stop(), 0);
  }
  EXPECT_EQ(run({"leave"}), 0) << said();
  EXPECT_TRUE(std::filesystem::is_empty(state_dir()));
  EXPECT_EQ(commands(), std::vector<std::string>{});
  EXPECT_EQ(read_file("/proc/self/mounts")->find(dir_.path()), std::string::npos);
  if (testing::Test::HasFailure()) {
    const Result<std::string> messages = read_file(messages_);
    std::fprintf(stderr, "--- bm-agent ---\n%s", messages ? messages->c_str() : "");
  }
}

void AgentProcess::start() {
  agent_ = Child({BM_AGENT_PROGRAM, "run", "--config", dir_.file("agent.yaml")}, messages_);
}

void AgentProcess::kill() { EXPECT_EQ(agent_.end(SIGKILL), 128 + SIGKILL); }

int AgentProcess::stop() { return agent_.end(SIGTERM); }

bool AgentProcess::wait_until_offered() {
  return eventually([this] { return market_.node().state() == "offered"; });
}

int AgentProcess::run(std::vector<std::string> words) {
  words.insert(words.begin(), BM_AGENT_PROGRAM);
  words.insert(words.end(), {"--config", dir_.file("agent.yaml")});
  (void)std::filesystem::remove(dir_.file("said"));
  return Child(words, dir_.file("said")).wait();
}

std::string AgentProcess::said() const {
  const Result<std::string> said = read_file(dir_.file("said"));
  return said ? *said : "";
}

std::vector<std::string> AgentProcess::podman() const { return podman_command(facts()); }

v1::RuntimeFacts AgentProcess::facts() const {
  v1::RuntimeFacts facts;
  EXPECT_TRUE(
      wire::decode(wire::Encoding::Json, *read_file(state_dir() + "/runtime.json"), facts).ok());
  return facts;
}

std::string AgentProcess::label_of_market() const {
  return "io.bmgpu.market=" + read_node_file(state_dir())->market();
}

std::string AgentProcess::label_of_node() const {
  return "io.bmgpu.node=" + read_node_file(state_dir())->node();
}

v1::JobSpec AgentProcess::shell(const std::string& script) {
  v1::JobSpec job;
  job.set_image("busybox");
  job.set_network(v1::NETWORK_MODE_NONE);
  for (const char* word : {"sh", "-c"}) {
    job.add_command(word);
  }
  job.add_command(script);
  return job;
}

}  // namespace bmgpu::agent
