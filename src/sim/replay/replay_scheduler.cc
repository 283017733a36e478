#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "sim/replay/replay.h"

namespace bmgpu::sim {
namespace {

using NodeGpus = std::vector<std::pair<std::size_t, std::int64_t>>;  // (node, GPUs)

class Scheduler {
 public:
  Scheduler(const std::vector<TraceJob>& jobs, const std::vector<Duration>& declared,
            const ReplayCluster& cluster, Discipline discipline)
      : jobs_(jobs),
        declared_(declared),
        cluster_(cluster),
        discipline_(discipline),
        free_(static_cast<std::size_t>(cluster.nodes), cluster.gpus_per_node),
        held_(jobs.size()) {
    run_.jobs.resize(jobs.size());
  }

  ReplayRun run() {
    std::size_t next = 0;
    Instant sample_at = jobs_.empty() ? Instant() : jobs_.front().submitted;
    while (next < jobs_.size() || !ends_.empty()) {
      const bool is_end =
          !ends_.empty() && (next == jobs_.size() || ends_.top().first <= jobs_[next].submitted);
      const Instant now = is_end ? ends_.top().first : jobs_[next].submitted;
      for (; sample_at <= now; sample_at = sample_at + kSampleEvery) {
        sample(sample_at);
      }
      while (!ends_.empty() && ends_.top().first == now) {
        end(ends_.top().second, now);
        ends_.pop();
      }
      for (; next < jobs_.size() && jobs_[next].submitted == now; ++next) {
        if (jobs_[next].gpus <= cluster_.gpus()) {
          waiting_.insert({rank(next), next});
        }
      }
      serve(now);
    }
    return std::move(run_);
  }

 private:
  using Rank = std::pair<Duration, Instant>;

  Rank rank(std::size_t job) const {
    return {discipline_ == Discipline::Fifo ? Duration() : declared_[job], jobs_[job].submitted};
  }

  void serve(Instant now) {
    std::int64_t failures = 0;
    for (auto it = waiting_.begin(); it != waiting_.end() && failures < kBackfill;) {
      if (start(it->second, now)) {
        it = waiting_.erase(it);
      } else {
        ++failures;
        ++it;
      }
    }
  }

  // Whole nodes, and the node with the fewest free GPUs that can hold the rest.
  std::optional<NodeGpus> place(std::int64_t gpus) const {
    NodeGpus chosen;
    std::int64_t left = gpus;
    for (std::size_t node = 0; node < free_.size() && left >= cluster_.gpus_per_node; ++node) {
      if (free_[node] == cluster_.gpus_per_node) {
        chosen.emplace_back(node, free_[node]);
        left -= free_[node];
      }
    }
    if (left == 0) {
      return chosen;
    }
    std::optional<std::size_t> best;
    for (std::size_t node = 0; node < free_.size(); ++node) {
      const bool is_taken = std::any_of(chosen.begin(), chosen.end(),
                                        [&](const auto& one) { return one.first == node; });
      if (!is_taken && free_[node] >= left && (!best || free_[node] < free_[*best])) {
        best = node;
      }
    }
    if (left >= cluster_.gpus_per_node || !best) {
      return std::nullopt;
    }
    chosen.emplace_back(*best, left);
    return chosen;
  }

  bool start(std::size_t job, Instant now) {
    auto chosen = place(jobs_[job].gpus);
    if (!chosen) {
      return false;
    }
    for (const auto& [node, gpus] : *chosen) {
      free_[node] -= gpus;
    }
    held_[job] = std::move(*chosen);
    run_.jobs[job].started = now;
    run_.jobs[job].leases = 1;
    ends_.push({now + jobs_[job].duration, job});
    return true;
  }

  void end(std::size_t job, Instant now) {
    for (const auto& [node, gpus] : held_[job]) {
      free_[node] += gpus;
    }
    held_[job].clear();
    run_.jobs[job].finished = now;
  }

  void sample(Instant at) {
    ClusterSample sample{.at = at};
    for (const std::int64_t free : free_) {
      sample.gpus_busy += cluster_.gpus_per_node - free;
      sample.gpus_fragmented += free < cluster_.gpus_per_node ? free : 0;
    }
    for (const auto& [rank, job] : waiting_) {
      ++sample.jobs_waiting;
      sample.gpus_waiting += jobs_[job].gpus;
    }
    run_.samples.push_back(sample);
  }

  const std::vector<TraceJob>& jobs_;
  const std::vector<Duration>& declared_;
  const ReplayCluster cluster_;
  const Discipline discipline_;
  std::vector<std::int64_t> free_;
  std::vector<NodeGpus> held_;
  std::set<std::pair<Rank, std::size_t>> waiting_;
  std::priority_queue<std::pair<Instant, std::size_t>, std::vector<std::pair<Instant, std::size_t>>,
                      std::greater<>>
      ends_;
  ReplayRun run_;
};

}  // namespace

ReplayRun replay_scheduler(const std::vector<TraceJob>& jobs, const std::vector<Duration>& declared,
                           const ReplayCluster& cluster, Discipline discipline) {
  return Scheduler(jobs, declared, cluster, discipline).run();
}

}  // namespace bmgpu::sim
