// `bm-agent guard` on virtual time: the real GuardState and a connection for it.
#pragma once

#include <cstdint>
#include <memory>

#include "agent_core/guard_state.h"
#include "sim/engine/stream.h"

namespace bmgpu::sim {

class SimNode;

class SimGuard {
 public:
  explicit SimGuard(SimNode& node) : node_(node) {}

  void start();
  void stop();  // it dies; what it published stays until the node does
  void node_dies();
  // Whether restartable jobs may run now, as the node's own clock says.
  bool permits() const;
  void answered(const std::shared_ptr<Stream>& stream, const agent_core::HeartbeatReply& reply);

 private:
  void connect();
  void opened(const std::shared_ptr<Stream>& stream);
  void connect_later();
  void disconnect();
  void beat();
  template <typename Task>
  void after(Duration delay, Task task);

  SimNode& node_;
  std::uint64_t life_ = 0;
  bool running_ = false;
  agent_core::Permission published_;
  agent_core::GuardState state_;
  std::shared_ptr<Stream> stream_;
  std::int64_t last_heard_ns_ = 0;
  Duration retry_;
};

}  // namespace bmgpu::sim
