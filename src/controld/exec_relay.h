// exec and cp: bytes between a tenant's WebSocket and the node that runs the job, with flow control
// so that neither side can fill bmd's memory.
//
// To the node: at most what the node granted; the rest waits here, and above 256 KiB the client is
// not read any more. To the client: the node gets new grants only while the client's send queue is
// below 4 MiB; tick() gives those that were held back.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/server.h"
#include "base/ids.h"

namespace bmgpu::v1 {
class ExecClientFrame;
class ExecStart;
class StreamFrame;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

class ExecRelay {
 public:
  static constexpr std::uint32_t kFirstWindow = 1 << 20;

  // The node's session, and its end: every stream on it ends.
  void node_here(NodeId node, std::shared_ptr<api::Socket> socket);
  void node_gone(NodeId node, const std::shared_ptr<api::Socket>& socket);

  // Connects `client` with the job of `lease` on `node`; returns the stream's number, 0 if the node
  // is not connected (the client has been told and closed).
  std::uint64_t start(NodeId node, LeaseId lease, std::shared_ptr<api::Socket> client,
                      const v1::ExecStart& start);

  void from_client(std::uint64_t stream, const v1::ExecClientFrame& frame);
  void client_gone(std::uint64_t stream);
  void from_node(NodeId node, const v1::StreamFrame& frame);

  void tick();

  // Tells a client why it cannot be, and closes it.
  static void refuse(api::Socket& client, const std::string& why);

 private:
  struct Stream {
    NodeId node;
    LeaseId lease;
    std::shared_ptr<api::Socket> client;
    std::uint64_t credit = kFirstWindow;  // bytes that may still go to the node
    std::deque<std::string> waiting;      // stdin bytes beyond the credit
    std::uint64_t waiting_bytes = 0;
    bool paused = false;
    bool stdin_closed = false;   // to be said once nothing waits
    std::uint32_t to_grant = 0;  // bytes that the client took
  };

  void send(const Stream& stream, v1::StreamFrame& frame, std::uint64_t id);
  void flush(Stream& stream, std::uint64_t id);
  void grant(Stream& stream, std::uint64_t id);

  std::mutex mutex_;
  std::map<NodeId, std::shared_ptr<api::Socket>> nodes_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t next_stream_ = 1;
};

}  // namespace bmgpu::controld
