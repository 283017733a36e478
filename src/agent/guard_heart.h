// The guard's loop: connect, beat, publish.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/event_loop.h"
#include "agent/permission_page.h"
#include "agent_core/guard_state.h"
#include "base/result.h"
#include "wire/client.h"

namespace bmgpu::v1 {
class NodeFile;
}
namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

// Everything happens on the thread of run(), but the socket's callbacks, which post.
class GuardHeart {
 public:
  static Result<std::unique_ptr<GuardHeart>> create(const std::string& state_dir, wire::Log& log);
  ~GuardHeart();
  // Until SIGTERM or SIGINT arrives or node.json is gone. Publishes no permission at the end.
  void run();

 private:
  GuardHeart(std::string state_dir, wire::Log& log, std::unique_ptr<EventLoop> loop,
             PermissionWriter page, const agent_core::Permission& before, std::string boot_id);
  void look_at_node_file();
  void connect();
  void connect_later();
  void disconnect(const std::string& why);
  void beat();
  void take(const std::string& message);
  void publish();

  const std::string state_dir_;
  wire::Log& log_;
  std::unique_ptr<EventLoop> loop_;
  PermissionWriter page_;
  agent_core::GuardState state_;
  const std::string boot_id_;
  Fd signals_;

  std::string node_file_;  // its bytes, as last read
  std::string node_;
  wire::Endpoint endpoint_;
  std::unique_ptr<wire::WebSocketClient> socket_;
  std::uint64_t connection_ = 0;  // number of the current one; callbacks of older ones are dropped
  std::chrono::milliseconds retry_;
  EventLoop::TimerId retry_timer_ = 0;
  std::int64_t last_heard_ns_ = 0;  // an answer, or the connection's start
  std::string last_failure_;        // logged once, not at each try
};

}  // namespace bmgpu::agent
