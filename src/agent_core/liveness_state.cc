#include "agent_core/liveness_state.h"

#include <algorithm>

namespace bmgpu::agent_core {

StartRecord next_start(const StartRecord& before, Instant journal_end, Instant now,
                       const LivenessTimes& times) {
  const Duration lived = journal_end - before.started;
  const bool told = lived > milliseconds(times.lost_ns / 1'000'000 + 1000);
  return {now, told ? journal_end : before.seen};
}

void LivenessState::watch(NodeId node, std::int64_t now_ns) {
  nodes_.try_emplace(node, Entry{.last_renewal_ns = now_ns, .last_heard_ns = {}, .answered = {}});
}

std::uint64_t LivenessState::connected(NodeId node, std::int64_t now_ns) {
  watch(node, now_ns);
  Entry& entry = nodes_.at(node);
  entry.connection = next_connection_++;
  entry.first_on_connection = true;
  entry.answered.clear();
  return entry.connection;
}

void LivenessState::disconnected(NodeId node, std::uint64_t connection) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end() && found->second.connection == connection) {
    found->second.connection = 0;
  }
}

bool LivenessState::heartbeat(NodeId node, std::uint64_t connection, std::uint64_t sequence,
                              std::uint64_t last_answer_sequence, std::int64_t now_ns) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.connection != connection) {
    return false;
  }
  Entry& entry = found->second;
  if (entry.first_on_connection) {
    entry.first_on_connection = false;
    entry.last_renewal_ns = now_ns;
    entry.last_heard_ns = now_ns;
  }
  while (!entry.answered.empty() && entry.answered.front().sequence <= last_answer_sequence) {
    if (entry.answered.front().sequence == last_answer_sequence) {
      const std::int64_t received_ns = entry.answered.front().received_ns;
      entry.last_renewal_ns = std::max(entry.last_renewal_ns, received_ns);
      entry.last_heard_ns = std::max(entry.last_heard_ns.value_or(received_ns), received_ns);
    }
    entry.answered.pop_front();
  }
  const bool stale = now_ns - entry.last_renewal_ns > times_.lost_ns - times_.fence_ns;
  if (stale || entry.answered.size() >= kUnacknowledgedMax) {
    return false;
  }
  entry.answered.push_back({sequence, now_ns});
  return true;
}

void LivenessState::renew_all(std::int64_t now_ns) {
  for (auto& [node, entry] : nodes_) {
    entry.last_renewal_ns = std::max(entry.last_renewal_ns, now_ns);
  }
}

std::vector<LivenessState::Silent> LivenessState::lost(std::int64_t now_ns) const {
  std::vector<Silent> silent;
  for (const auto& [node, entry] : nodes_) {
    if (now_ns - entry.last_renewal_ns >= times_.lost_ns) {
      silent.push_back({node, entry.last_renewal_ns, entry.last_heard_ns});
    }
  }
  return silent;
}

bool LivenessState::is_watched_alive(NodeId node, std::int64_t now_ns) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && now_ns - found->second.last_renewal_ns < times_.lost_ns;
}

std::optional<std::int64_t> LivenessState::silence_ns(NodeId node, std::int64_t now_ns) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.last_heard_ns) {
    return std::nullopt;
  }
  return std::max<std::int64_t>(now_ns - found->second.last_renewal_ns, 0);
}

}  // namespace bmgpu::agent_core
