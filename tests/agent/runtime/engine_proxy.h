// Stands between a shim and the podman service of a test node, and kills the service (−9) at a
// chosen moment of a chosen call. The service is started again for the next call.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "agent/runtime/files.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

class EngineProxy {
 public:
  struct Plan {
    std::string call;  // the end of the request's path, "containers/create" or "/start"
    enum class Moment { Unsent, Sent, Answered } moment = Moment::Unsent;
    // With Sent: killed once this is true.
    std::function<bool()> when = [] { return true; };
    int times = 1;
  };

  // Listens in `run_dir` as the service of `real` does in its own.
  EngineProxy(v1::RuntimeFacts real, const std::string& run_dir, Plan plan);
  ~EngineProxy();

  int kills() const { return kills_; }

 private:
  void accept_all();
  void serve(int client);
  bool due(const std::string& head, Plan::Moment moment) const;
  void kill_service();

  const v1::RuntimeFacts real_;
  const Plan plan_;
  Fd listener_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> kills_{0};
  std::thread acceptor_;
  std::vector<std::thread> calls_;  // of the acceptor's thread, then of the destructor's
};

}  // namespace bmgpu::agent
