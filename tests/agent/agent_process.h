// A real bm-agent with simulated GPUs and a podman of its own, in a temporary folder.
#pragma once

#include <string>
#include <vector>

#include "agent/market_process.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

class AgentProcess {
 public:
  // Joins `market` as `name` and runs until the node is offered.
  AgentProcess(MarketProcess& market, const std::string& name);
  ~AgentProcess();  // bm-agent leave; nothing of it may be left

  void start();
  void kill();  // −9
  int stop();   // SIGTERM; the exit code
  bool wait_until_offered();

  std::string state_dir() const { return dir_.file("state"); }
  // Runs `bm-agent WORDS --config …`; its exit code. What it said is in said().
  int run(std::vector<std::string> words);
  std::string said() const;
  // podman with this node's storage, and what the probe of the engine found.
  std::vector<std::string> podman() const;
  v1::RuntimeFacts facts() const;
  std::string label_of_market() const;
  std::string label_of_node() const;

  // How many of its processes have `word` in their command.
  int processes(const std::string& word) const;

  static v1::JobSpec shell(const std::string& script);

 private:
  std::vector<std::string> commands() const;  // of processes that name the folder

  MarketProcess& market_;
  TempDir dir_;
  const std::string messages_ = dir_.file("agent.log");
  Child agent_;
};

}  // namespace bmgpu::agent
