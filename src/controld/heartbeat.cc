#include "controld/heartbeat.h"

#include "bmgpu/v1/agent.pb.h"
#include "controld/metrics.h"
#include "wire/encoding.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

class Guard {
 public:
  Guard(HeartbeatParts parts, NodeId node, std::shared_ptr<api::Socket> socket)
      : parts_(parts),
        node_(node),
        socket_(std::move(socket)),
        connection_(parts.liveness.connected(node, boot_now())) {}

  void receive(const std::string& bytes) {
    v1::Heartbeat heartbeat;
    const Result<void> decoded = wire::decode_answer(bytes, heartbeat);
    if (!decoded || heartbeat.node() != wire::to_text(node_)) {
      socket_->close("a frame that is not a Heartbeat of this node");
      return;
    }
    const bool answered = parts_.liveness.heartbeat(node_, connection_, heartbeat.sequence(),
                                                    heartbeat.last_answer_sequence(), boot_now());
    parts_.metrics.heartbeat(answered);
    if (heartbeat.clock_unix_ms() != 0) {
      parts_.liveness.set_clock_offset(node_, Instant(heartbeat.clock_unix_ms()) - wall_now());
    }
    if (!answered) {
      socket_->close("answers do not arrive; connect anew");
      return;
    }
    v1::HeartbeatAnswer answer;
    answer.set_sequence(heartbeat.sequence());
    answer.set_sent_boottime_ns(heartbeat.sent_boottime_ns());
    answer.set_incarnation(parts_.incarnation.value());
    answer.set_fence_ms(static_cast<std::uint64_t>(parts_.liveness.options().fence.count()));
    socket_->send(wire::encode(wire::Encoding::Proto, answer));
  }

  void closed() { parts_.liveness.disconnected(node_, connection_); }

 private:
  HeartbeatParts parts_;
  const NodeId node_;
  const std::shared_ptr<api::Socket> socket_;
  const std::uint64_t connection_;
};

}  // namespace

void serve_heartbeats(api::Server& server, HeartbeatParts parts) {
  server.socket("bmgpu.v1.Agent/Heartbeat",
                [parts](const api::Identity& caller,
                        std::shared_ptr<api::Socket> socket) -> Result<api::SocketHandler> {
                  if (caller.role != api::Role::Node) {
                    return Error{ErrorCode::PermissionDenied, "only nodes send heartbeats"};
                  }
                  auto guard = std::make_shared<Guard>(parts, caller.node, std::move(socket));
                  api::SocketHandler handler;
                  handler.on_message = [guard](const std::string& bytes) { guard->receive(bytes); };
                  handler.on_closed = [guard] { guard->closed(); };
                  return handler;
                });
}

}  // namespace bmgpu::controld
