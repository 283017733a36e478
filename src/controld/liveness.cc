#include "controld/liveness.h"

#include <algorithm>

namespace bmgpu::controld {

void Liveness::watch(NodeId node, BootTime now) {
  const std::lock_guard lock(mutex_);
  nodes_.try_emplace(node, Entry{.last_renewal = now, .clock_offset = {}, .answered = {}});
}

std::uint64_t Liveness::connected(NodeId node, BootTime now) {
  const std::lock_guard lock(mutex_);
  Entry& entry =
      nodes_.try_emplace(node, Entry{.last_renewal = now, .clock_offset = {}, .answered = {}})
          .first->second;
  entry.connection = next_connection_++;
  entry.first_on_connection = true;
  entry.answered.clear();
  return entry.connection;
}

void Liveness::disconnected(NodeId node, std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end() && found->second.connection == connection) {
    found->second.connection = 0;
  }
}

bool Liveness::heartbeat(NodeId node, std::uint64_t connection, std::uint64_t sequence,
                         std::uint64_t last_answer_sequence, BootTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.connection != connection) {
    return false;
  }
  Entry& entry = found->second;
  if (entry.first_on_connection) {
    entry.first_on_connection = false;
    entry.last_renewal = now;
    entry.heard = true;
  }
  while (!entry.answered.empty() && entry.answered.front().sequence <= last_answer_sequence) {
    if (entry.answered.front().sequence == last_answer_sequence) {
      entry.last_renewal = std::max(entry.last_renewal, entry.answered.front().received);
      entry.heard = true;
    }
    entry.answered.pop_front();
  }
  const bool stale = now - entry.last_renewal > options_.lost - options_.fence;
  if (stale || entry.answered.size() >= kUnacknowledgedMax) {
    return false;
  }
  entry.answered.push_back({sequence, now});
  return true;
}

void Liveness::set_clock_offset(NodeId node, Duration offset) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) {
    found->second.clock_offset = offset;
  }
}

std::optional<Duration> Liveness::clock_offset(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::nullopt : found->second.clock_offset;
}

void Liveness::renew_all(BootTime now) {
  const std::lock_guard lock(mutex_);
  for (auto& [node, entry] : nodes_) {
    entry.last_renewal = std::max(entry.last_renewal, now);
  }
}

std::vector<Liveness::Silent> Liveness::lost(BootTime now) const {
  const std::lock_guard lock(mutex_);
  std::vector<Silent> silent;
  for (const auto& [node, entry] : nodes_) {
    if (now - entry.last_renewal >= options_.lost) {
      silent.push_back({node, entry.last_renewal});
    }
  }
  return silent;
}

bool Liveness::is_watched_alive(NodeId node, BootTime now) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found != nodes_.end() && now - found->second.last_renewal < options_.lost;
}

void Liveness::forget(NodeId node) {
  const std::lock_guard lock(mutex_);
  nodes_.erase(node);
}

std::optional<BootTime> Liveness::silence(NodeId node, BootTime now) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.heard) {
    return std::nullopt;
  }
  return std::max(now - found->second.last_renewal, BootTime{});
}

}  // namespace bmgpu::controld
