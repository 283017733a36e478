#include "controld/exec_relay.h"

#include <algorithm>

#include "bmgpu/v1/agent.pb.h"
#include "wire/encoding.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::uint64_t kWaitingBytesMax = 256 * 1024;
constexpr std::size_t kClientQueueBytesMax = std::size_t{4} << 20;
constexpr std::uint32_t kGrantBytesMin = 64 * 1024;

std::string bytes_of(const google::protobuf::Message& message) {
  return wire::encode(wire::Encoding::Proto, message);
}

}  // namespace

void ExecRelay::refuse(api::Socket& client, const std::string& why) {
  v1::ExecServerFrame frame;
  frame.set_error(why);
  client.send(bytes_of(frame));
  client.close("refused");
}

void ExecRelay::node_here(NodeId node, std::shared_ptr<api::Socket> socket) {
  const std::lock_guard lock(mutex_);
  nodes_[node] = std::move(socket);
}

void ExecRelay::node_gone(NodeId node, const std::shared_ptr<api::Socket>& socket) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second != socket) {
    return;
  }
  nodes_.erase(found);
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (at->second.node == node) {
      refuse(*at->second.client, "the connection to the node broke; the job itself goes on");
      at = streams_.erase(at);
    } else {
      ++at;
    }
  }
}

std::uint64_t ExecRelay::start(NodeId node, LeaseId lease, std::shared_ptr<api::Socket> client,
                               const v1::ExecStart& start) {
  const std::lock_guard lock(mutex_);
  if (!nodes_.contains(node)) {
    refuse(*client, "the node is not connected now; try again in a moment");
    return 0;
  }
  const std::uint64_t id = next_stream_++;
  const Stream& stream = streams_[id] =
      Stream{.node = node, .lease = lease, .client = std::move(client), .waiting = {}};
  v1::StreamFrame frame;
  *frame.mutable_to_node()->mutable_start() = start;
  send(stream, frame, id);
  return id;
}

void ExecRelay::send(const Stream& stream, v1::StreamFrame& frame, std::uint64_t id) {
  frame.set_stream(id);
  frame.set_lease(wire::to_text(stream.lease));
  v1::MarketFrame market;
  *market.mutable_stream() = std::move(frame);
  const auto node = nodes_.find(stream.node);
  if (node != nodes_.end()) {
    node->second->send(bytes_of(market));
  }
}

void ExecRelay::from_client(std::uint64_t id, const v1::ExecClientFrame& frame) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) {
    return;
  }
  Stream& stream = found->second;
  if (frame.has_resize()) {
    v1::StreamFrame out;
    *out.mutable_to_node() = frame;
    send(stream, out, id);
  } else if (frame.has_start()) {
    refuse(*stream.client, "a stream starts once");
  } else if (frame.kind_case() == v1::ExecClientFrame::kStdin && !stream.stdin_closed) {
    stream.waiting.push_back(frame.stdin());
    stream.waiting_bytes += frame.stdin().size();
    flush(stream, id);
  } else if (frame.kind_case() == v1::ExecClientFrame::kStdinClosed && !stream.stdin_closed) {
    stream.stdin_closed = true;
    flush(stream, id);
  }
}

void ExecRelay::flush(Stream& stream, std::uint64_t id) {
  const bool had_bytes = !stream.waiting.empty();
  while (!stream.waiting.empty() && stream.credit > 0) {
    std::string& front = stream.waiting.front();
    const std::size_t size = std::min<std::uint64_t>(front.size(), stream.credit);
    v1::StreamFrame out;
    out.mutable_to_node()->set_stdin(front.substr(0, size));
    send(stream, out, id);
    stream.credit -= size;
    stream.waiting_bytes -= size;
    if (size == front.size()) {
      stream.waiting.pop_front();
    } else {
      front.erase(0, size);
    }
  }
  if (stream.stdin_closed && stream.waiting.empty()) {
    v1::StreamFrame out;
    out.mutable_to_node()->set_stdin_closed(true);
    send(stream, out, id);
  }
  if (!stream.paused && stream.waiting_bytes > kWaitingBytesMax) {
    stream.paused = true;
    stream.client->pause();
  } else if (stream.paused && had_bytes && stream.waiting_bytes <= kWaitingBytesMax / 2) {
    stream.paused = false;
    stream.client->resume();
  }
}

void ExecRelay::client_gone(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  if (found != streams_.end()) {
    v1::StreamFrame out;
    out.set_closed(true);
    send(found->second, out, id);
    streams_.erase(found);
  }
}

void ExecRelay::from_node(NodeId node, const v1::StreamFrame& frame) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(frame.stream());
  if (found == streams_.end() || found->second.node != node) {
    return;
  }
  Stream& stream = found->second;
  if (frame.window() > 0) {
    stream.credit += frame.window();
    if (!stream.waiting.empty()) {
      flush(stream, frame.stream());
    }
  }
  if (frame.has_to_client()) {
    const v1::ExecServerFrame& out = frame.to_client();
    const bool sent = stream.client->send(bytes_of(out));
    stream.to_grant += static_cast<std::uint32_t>(out.stdout().size() + out.stderr().size());
    const bool last = out.kind_case() == v1::ExecServerFrame::kExitCode ||
                      out.kind_case() == v1::ExecServerFrame::kError;
    if (last || !sent) {
      stream.client->close("done");
      streams_.erase(found);
      return;
    }
    grant(stream, frame.stream());
  } else if (frame.closed()) {
    refuse(*stream.client, "the node ended the stream; has the job ended?");
    streams_.erase(found);
  }
}

void ExecRelay::grant(Stream& stream, std::uint64_t id) {
  if (stream.to_grant < kGrantBytesMin || stream.client->queued_bytes() > kClientQueueBytesMax) {
    return;
  }
  v1::StreamFrame out;
  out.set_window(stream.to_grant);
  stream.to_grant = 0;
  send(stream, out, id);
}

void ExecRelay::tick() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, stream] : streams_) {
    grant(stream, id);
  }
}

}  // namespace bmgpu::controld
