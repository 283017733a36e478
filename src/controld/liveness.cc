#include "controld/liveness.h"

namespace bmgpu::controld {

Liveness::Liveness(LivenessOptions options) : options_(options), state_(times()) {}

agent_core::LivenessTimes Liveness::times() const {
  return {BootTime(options_.lost).count(), BootTime(options_.fence).count()};
}

void Liveness::watch(NodeId node, BootTime now) {
  const std::lock_guard lock(mutex_);
  state_.watch(node, now.count());
}

std::uint64_t Liveness::connected(NodeId node, BootTime now) {
  const std::lock_guard lock(mutex_);
  return state_.connected(node, now.count());
}

void Liveness::disconnected(NodeId node, std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  state_.disconnected(node, connection);
}

bool Liveness::heartbeat(NodeId node, std::uint64_t connection, std::uint64_t sequence,
                         std::uint64_t last_answer_sequence, BootTime now) {
  const std::lock_guard lock(mutex_);
  return state_.heartbeat(node, connection, sequence, last_answer_sequence, now.count());
}

void Liveness::set_clock_offset(NodeId node, Duration offset) {
  const std::lock_guard lock(mutex_);
  clock_offsets_.insert_or_assign(node, offset);
}

std::optional<Duration> Liveness::clock_offset(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = clock_offsets_.find(node);
  return found == clock_offsets_.end() ? std::nullopt : std::optional(found->second);
}

void Liveness::renew_all(BootTime now) {
  const std::lock_guard lock(mutex_);
  state_.renew_all(now.count());
}

std::vector<Liveness::Silent> Liveness::lost(BootTime now) const {
  const std::lock_guard lock(mutex_);
  std::vector<Silent> silent;
  for (const agent_core::LivenessState::Silent& one : state_.lost(now.count())) {
    const auto heard = one.last_heard_ns;
    silent.push_back({one.node, BootTime(one.last_renewal_ns),
                      heard ? std::optional(BootTime(*heard)) : std::nullopt});
  }
  return silent;
}

bool Liveness::is_watched_alive(NodeId node, BootTime now) const {
  const std::lock_guard lock(mutex_);
  return state_.is_watched_alive(node, now.count());
}

void Liveness::forget(NodeId node) {
  const std::lock_guard lock(mutex_);
  state_.forget(node);
  clock_offsets_.erase(node);
}

std::optional<BootTime> Liveness::silence(NodeId node, BootTime now) const {
  const std::lock_guard lock(mutex_);
  const std::optional<std::int64_t> ns = state_.silence_ns(node, now.count());
  return ns ? std::optional(BootTime(*ns)) : std::nullopt;
}

}  // namespace bmgpu::controld
