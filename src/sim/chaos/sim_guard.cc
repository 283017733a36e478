#include "sim/chaos/sim_guard.h"

#include <algorithm>
#include <utility>

#include "sim/chaos/market_process.h"
#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {
namespace {

constexpr Duration kBeatPeriod = milliseconds(500);
constexpr Duration kConnectLimit = milliseconds(1500);
constexpr Duration kRetryMin = milliseconds(50);
constexpr Duration kRetryMax = milliseconds(1000);
constexpr std::int64_t kSilenceMaxNs = 2'000'000'000;

}  // namespace

template <typename Task>
void SimGuard::after(Duration delay, Task task) {
  node_.world.timeline.after(delay, [this, life = life_, task] {
    if (running_ && life == life_) {
      task();
    }
  });
}

void SimGuard::start() {
  disconnect();
  ++life_;
  running_ = true;
  state_ = agent_core::GuardState(published_);
  retry_ = kRetryMin;
  connect();
  after(kBeatPeriod, [this] { beat(); });
}

void SimGuard::stop() {
  disconnect();
  running_ = false;
}

void SimGuard::node_dies() {
  if (stream_) {
    stream_->snap();
  }
  stream_.reset();
  running_ = false;
  published_ = {};
  state_ = agent_core::GuardState();
}

bool SimGuard::permits() const {
  return node_.is_up() && agent_core::permits(published_, node_.boottime_ns());
}

void SimGuard::connect() {
  World& world = node_.world;
  Link& link = *world.links.at(node_.id);
  if (!world.market || link.is_cut(End::Market) || link.is_cut(End::Node)) {
    after(world.market ? kConnectLimit : milliseconds(20), [this] { connect_later(); });
    return;
  }
  after(link.draw_latency(), [this, &world, &link, life = world.market_life] {
    if (!world.market || world.market_life != life || link.is_cut(End::Node)) {
      connect_later();
      return;
    }
    const std::shared_ptr<Stream> stream = link.connect();
    world.market->nodes().heartbeats_connected(node_.id, stream);
    opened(stream);
  });
}

void SimGuard::opened(const std::shared_ptr<Stream>& stream) {
  stream_ = stream;
  stream->on_closed(End::Node, [this, life = life_, weak = std::weak_ptr<Stream>(stream)] {
    if (running_ && life == life_ && stream_ == weak.lock()) {
      stream_.reset();
      connect_later();
    }
  });
  last_heard_ns_ = node_.boottime_ns();
}

void SimGuard::connect_later() {
  after(retry_, [this] { connect(); });
  retry_ = std::min(retry_ + retry_, kRetryMax);
}

void SimGuard::disconnect() {
  if (stream_) {
    stream_->close(End::Node);
    stream_.reset();
  }
}

void SimGuard::beat() {
  after(kBeatPeriod, [this] { beat(); });
  if (!stream_) {
    return;
  }
  const std::int64_t now = node_.boottime_ns();
  if (now - last_heard_ns_ > kSilenceMaxNs) {
    disconnect();
    connect_later();
    return;
  }
  const agent_core::HeartbeatToSend next = state_.next(now);
  const Heartbeat heartbeat{next.sequence, now, next.last_answer_sequence};
  stream_->send(End::Node, [&world = node_.world, id = node_.id, stream = stream_, heartbeat,
                            life = node_.world.market_life] {
    if (world.market && world.market_life == life) {
      world.market->nodes().heartbeat(id, stream, heartbeat);
    }
  });
}

void SimGuard::answered(const std::shared_ptr<Stream>& stream,
                        const agent_core::HeartbeatReply& reply) {
  if (!running_ || stream != stream_) {
    return;
  }
  const std::int64_t now = node_.boottime_ns();
  state_.take(reply, now);
  last_heard_ns_ = now;
  retry_ = kRetryMin;
  published_ = state_.permission();
  if (node_.world.sabotage == Sabotage::GuardExtendsPermissions) {
    published_.until_boottime_ns = now + static_cast<std::int64_t>(reply.fence_ms) * 1'000'000;
  }
}

}  // namespace bmgpu::sim
