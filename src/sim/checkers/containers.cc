#include "sim/checkers/containers.h"

#include <algorithm>
#include <string>

namespace bmgpu::sim {
namespace {

std::string text(const agent_core::AttemptKey& key) {
  return "lease-" + std::to_string(key.lease.value()) + "/" + std::to_string(key.rank) + "/" +
         std::to_string(key.attempt.value());
}

std::string text(NodeId node) { return "node-" + std::to_string(node.value()); }

}  // namespace

void Containers::created(NodeId node, const agent_core::AttemptKey& key,
                         const std::vector<int>& gpus, Instant now) {
  if (promises_.lease(key.lease) == nullptr) {
    verdict_.fail(now, "not-durable",
                  text(key) + " starts on " + text(node) + " before its lease is durable");
  }
  for (const int gpu : gpus) {
    const auto [holder, is_free] = holders_.try_emplace({node, gpu}, key);
    if (!is_free) {
      verdict_.fail(now, "gpu-twice",
                    "GPU " + std::to_string(gpu) + " of " + text(node) + " is held by " +
                        text(holder->second) + " and " + text(key));
    }
  }
  alive_[{node, key}] = {gpus, std::nullopt};
}

void Containers::released(NodeId node, const agent_core::AttemptKey& key, Instant now) {
  const auto found = alive_.find({node, key});
  if (found == alive_.end()) {
    return;
  }
  for (const auto& [place, container] : alive_) {
    const bool same_rank = place.second.lease == key.lease && place.second.rank == key.rank;
    if (same_rank && container.released && place != found->first) {
      verdict_.fail(now, "rank-twice",
                    text(key) + " runs on " + text(node) + " while " + text(place.second) +
                        " runs on " + text(place.first));
    }
  }
  if (!released_.insert(key).second) {
    verdict_.fail(now, "attempt-twice", text(key) + " starts its job again on " + text(node));
  }
  found->second.released = now;
  promises_.job_started(key.lease, now);
}

void Containers::dead(NodeId node, const agent_core::AttemptKey& key, Instant now) {
  const auto found = alive_.find({node, key});
  if (found == alive_.end()) {
    return;
  }
  for (const int gpu : found->second.gpus) {
    const auto holder = holders_.find({node, gpu});
    if (holder != holders_.end() && holder->second == key) {
      holders_.erase(holder);
    }
  }
  if (found->second.released) {
    promises_.job_stopped(key.lease, now);
  }
  alive_.erase(found);
}

bool Containers::is_running(LeaseId lease) const {
  return std::any_of(alive_.begin(), alive_.end(), [&](const auto& entry) {
    return entry.first.second.lease == lease && entry.second.released.has_value();
  });
}

void Containers::check_ends(Instant now, Duration patience, bool connected) {
  for (const auto& [place, container] : alive_) {
    const LeaseFacts* facts = promises_.lease(place.second.lease);
    if (facts == nullptr) {
      continue;  // not-durable has been said
    }
    const bool past_end = now - facts->end > patience;
    const bool past_word = connected && facts->ending && now - *facts->ending > patience;
    if (past_end || past_word) {
      verdict_.fail(
          now, "orphan",
          text(place.second) + " still runs on " + text(place.first) +
              (past_end ? " after its lease's end" : " after the market ended its lease"));
    }
  }
}

}  // namespace bmgpu::sim
