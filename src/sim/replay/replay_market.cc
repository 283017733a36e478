// A job no wider than a node is one order, which waits in the market's own queue.
//
// A wider one needs several nodes at the same time. Its owner books them firmly: the start is the
// first quarter hour from which on enough nodes are known to be free, as their leases end; if that
// is further away than can be booked, its owner looks again then. The work begins when the last
// of its leases has started.
//
// A lease that ends before the work is done (30 days are the most) is followed by another order
// for the rest. Nodes report at once what they are told, and their GPUs clean.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/check.h"
#include "core/book/wish.h"
#include "core/core.h"
#include "core/views.h"
#include "sim/replay/replay.h"

namespace bmgpu::sim {
namespace {

// What is under way for one job.
struct Progress {
  Duration left;  // work
  Duration declared;
  std::set<LeaseId> waited_for;  // leases that have not started
  std::set<LeaseId> started;
  std::optional<Instant> working_since;
  std::uint64_t round = 0;  // an end that was planned in an older one does not count
};

struct Planned {
  Instant at;
  bool looks = false;  // for nodes; otherwise the work ends. Ends come first
  std::size_t job = 0;
  std::uint64_t round = 0;
  friend auto operator<=>(const Planned&, const Planned&) = default;
};

class Replay {
 public:
  Replay(const std::vector<TraceJob>& jobs, const std::vector<Duration>& declared,
         const ReplayCluster& cluster)
      : jobs_(jobs), declared_(declared), cluster_(cluster), progress_(jobs.size()) {
    run_.jobs.resize(jobs.size());
    now_ = jobs.empty() ? Instant() : jobs.front().submitted;
    core::SetPolicy set;
    set.policy.waiting_max = hours(24) * 365;
    execute(set);
    for (std::int64_t node = 1; node <= cluster.nodes; ++node) {
      add_node(NodeId(static_cast<std::uint64_t>(node)));
    }
    settle();
  }

  ReplayRun run() {
    Instant sample_at = now_;
    while (next_ < jobs_.size() || !planned_.empty() || unfinished_ > 0) {
      now_ = next_time();
      for (; sample_at <= now_; sample_at = sample_at + kSampleEvery) {
        sample(sample_at);
      }
      carry_out_planned();
      settle();
      for (; next_ < jobs_.size() && jobs_[next_].submitted <= now_; ++next_) {
        submit(next_);
        settle();
      }
    }
    return std::move(run_);
  }

 private:
  Instant next_time() const {
    std::optional<Instant> next = core::next_deadline(state_);
    const auto at = [&](Instant when) { next = next ? std::min(*next, when) : when; };
    if (next_ < jobs_.size()) {
      at(jobs_[next_].submitted);
    }
    if (!planned_.empty()) {
      at(planned_.top().at);
    }
    return std::max(now_, *next);
  }

  core::Answer execute(const core::Command& command) {
    ++run_.decisions;
    core::Decision decision = core::decide(state_, {now_, Incarnation(1)}, command);
    for (const core::Event& event : decision.events) {
      core::apply(state_, event);
      observe(event);
    }
    return std::move(decision.answer);
  }

  // Ticks and reports until nothing is due.
  void settle() {
    for (;;) {
      while (!reports_.empty()) {
        const core::Command report = std::move(reports_.front());
        reports_.pop();
        execute(report);
      }
      const auto due = core::next_deadline(state_);
      if (!due || *due > now_) {
        return;
      }
      execute(core::Tick{});
    }
  }

  void add_node(NodeId id) {
    core::RegisterNode command;
    command.node = id;
    command.owner = AccountId(1'000'000);
    command.site = SiteId(1);
    const std::int64_t gpus = cluster_.gpus_per_node;
    command.capacity = {gpus * 8'000, gpus * 65'536, gpus * 262'144};
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
      command.gpus.push_back({"GPU-" + std::to_string(id.value()) + "-" + std::to_string(gpu),
                              {"NVIDIA A100 80GB PCIe", 81'920, core::Form::Pcie}});
    }
    execute(command);
    execute(core::SetNodeReady{id, true});
    for (const core::GpuRecord& gpu : state_.nodes.at(id).gpus) {
      gpus_[gpu.id] = {id, gpu.uuid, true, true};
    }
    for (const core::GpuDescription& gpu : command.gpus) {
      execute(core::ReportGpu{id, gpu.uuid, true, true});
    }
  }

  AccountId account_of(std::size_t job) {
    return accounts_.try_emplace(jobs_[job].account, AccountId(accounts_.size() + 1)).first->second;
  }

  void submit(std::size_t job) {
    if (jobs_[job].gpus > cluster_.gpus()) {
      return;
    }
    progress_[job].left = jobs_[job].duration;
    progress_[job].declared = declared_[job];
    ++unfinished_;
    place(job);
  }

  Duration ask_for(std::size_t job) const {
    return std::clamp(progress_[job].declared, core::Limits::kLeaseMin, core::Limits::kLeaseMax);
  }

  void place(std::size_t job) {
    if (jobs_[job].gpus > cluster_.gpus_per_node) {
      place_wide(job);
    } else {
      order(job, jobs_[job].gpus, ask_for(job), {}, false);
    }
  }

  void order(std::size_t job, std::int64_t gpus, Duration duration, core::TimeWish wish,
             bool firm) {
    core::PlaceOrder command;
    command.tenant = account_of(job);
    command.resources.gpus = gpus;
    command.duration = duration;
    command.wish = wish;
    command.refuse_if_unavailable = firm;
    const std::uint64_t id = state_.next_id;
    job_of_.emplace(LeaseId(id), job);
    progress_[job].waited_for.insert(LeaseId(id));
    ++run_.jobs[job].leases;
    const core::Answer answer = execute(command);
    const auto* accepted = std::get_if<core::OrderAnswer>(&answer);
    check(accepted != nullptr && accepted->order == OrderId(id), "replay: an order was refused");
  }

  // The first instant from which on `nodes` nodes have no lease, as far as is known.
  Instant all_free_from(std::int64_t nodes) const {
    std::map<NodeId, Instant> free_from;
    for (const core::NodeView& node : core::nodes(state_)) {
      free_from[node.id] = now_;
    }
    for (const auto& [id, lease] : state_.leases) {
      if (lease.state == core::LeaseState::Cancelled) {
        continue;
      }
      for (const core::RankPlacement& rank : lease.allocations.back().ranks) {
        Instant& free = free_from.at(rank.node);
        free = std::max(free, lease.end);
      }
    }
    std::vector<Instant> times;
    for (const auto& [node, free] : free_from) {
      times.push_back(free);
    }
    std::sort(times.begin(), times.end());
    return times.at(static_cast<std::size_t>(nodes - 1));
  }

  void place_wide(std::size_t job) {
    wide_waiting_.insert(job);
    const std::int64_t width = cluster_.gpus_per_node;
    const std::int64_t nodes = (jobs_[job].gpus + width - 1) / width;
    const Instant free = all_free_from(nodes);
    const bool now = free <= now_;
    const Instant start = now ? now_ : core::next_border(free);
    // The last of its leases may start later by the turnaround.
    const Duration duration = std::min(ask_for(job) + (now ? Duration() : state_.policy.turnaround),
                                       core::Limits::kLeaseMax);
    if (!now && start + duration > core::book_end(state_, now_)) {
      planned_.push({start, true, job, progress_[job].round});
      return;
    }
    core::TimeWish wish;
    if (!now) {
      wish.start = core::StartKind::At;
      wish.earliest = start;
    }
    for (std::int64_t left = jobs_[job].gpus; left > 0; left -= width) {
      order(job, std::min(left, width), duration, wish, true);
    }
  }

  // All ends before the market sees the time, so that a lease that ends with its work is not cut.
  void carry_out_planned() {
    while (!planned_.empty() && planned_.top().at <= now_) {
      const Planned due = planned_.top();
      planned_.pop();
      if (due.round != progress_[due.job].round) {
        continue;
      }
      if (due.looks) {
        settle();
        place(due.job);
      } else {
        finish(due.job);
      }
    }
  }

  void finish(std::size_t job) {
    Progress& progress = progress_[job];
    run_.jobs[job].finished = now_;
    --unfinished_;
    ++progress.round;
    for (const LeaseId lease : progress.started) {
      end(lease, core::EndReason::JobExited);
    }
    progress.started.clear();
  }

  // A lease of an unfinished job is over. Its others are given back; its owner orders for the rest.
  void gone(LeaseId id) {
    const auto found = job_of_.find(id);
    if (found == job_of_.end()) {
      return;
    }
    const std::size_t job = found->second;
    Progress& progress = progress_[job];
    if (progress.started.erase(id) + progress.waited_for.erase(id) == 0) {
      return;
    }
    ++run_.leases_cut;
    if (progress.working_since) {
      progress.left = progress.left - (now_ - *progress.working_since);
      progress.working_since.reset();
    }
    for (const auto& leases : {progress.started, progress.waited_for}) {
      for (const LeaseId other : leases) {
        reports_.push(core::StopOrder{account_of(job), OrderId(other.value())});
      }
    }
    progress.started.clear();
    progress.waited_for.clear();
    planned_.push({now_, true, job, ++progress.round});
  }

  void end(LeaseId id, core::EndReason reason) {
    const auto& attempt = state_.leases.at(id).attempts.at(0);
    reports_.push(core::ReportAttemptEnded{
        id, 0, {attempt.incarnation, attempt.number}, reason, now_, 0, ""});
  }

  void observe(const core::Event& event) {
    if (const auto* granted = std::get_if<core::LeaseGranted>(&event)) {
      if (granted->lease.state == core::LeaseState::Preparing) {
        started(granted->lease.id);
      }
    } else if (const auto* started_booked = std::get_if<core::LeaseStarted>(&event)) {
      started(started_booked->id);
    } else if (const auto* ending = std::get_if<core::LeaseEnding>(&event)) {
      end(ending->id, ending->reason);
      gone(ending->id);
    } else if (const auto* ended = std::get_if<core::LeaseEnded>(&event)) {
      run_.revenue = run_.revenue + ended->charged;
      gone(ended->id);
      job_of_.erase(ended->id);
      clean_gpus_of(ended->id);
    } else if (const auto* closed = std::get_if<core::SlotClosed>(&event)) {
      for (const core::ClosedPool& pool : closed->pools) {
        run_.slot_prices.push_back(pool.price);
      }
    }
  }

  void started(LeaseId id) {
    const core::Lease& lease = state_.leases.at(id);
    const auto& attempt = lease.attempts.at(0);
    reports_.push(core::ReportAttemptRunning{id, 0, {attempt.incarnation, attempt.number}, now_});
    for (const core::Item& item : lease.allocations.back().ranks.at(0).items) {
      held_[id].push_back(item.gpu);
    }
    const std::size_t job = job_of_.at(id);
    Progress& progress = progress_[job];
    progress.waited_for.erase(id);
    progress.started.insert(id);
    if (!progress.waited_for.empty()) {
      return;
    }
    for (const LeaseId one : progress.started) {
      const core::Lease& held = state_.leases.at(one);
      run_.gpu_hours_lost += static_cast<double>((now_ - held.started).count() * held.gpus) / 3.6e6;
    }
    progress.working_since = now_;
    wide_waiting_.erase(job);
    run_.jobs[job].started = run_.jobs[job].started.value_or(now_);
    planned_.push({now_ + progress.left, false, job, progress.round});
  }

  void clean_gpus_of(LeaseId id) {
    for (const GpuId gpu : held_[id]) {
      reports_.push(gpus_.at(gpu));
    }
    held_.erase(id);
  }

  void sample(Instant at) {
    ClusterSample sample{.at = at};
    for (const core::NodeView& node : core::nodes(state_)) {
      const auto busy = std::count_if(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) {
        return gpu.state == core::GpuState::Leased;
      });
      sample.gpus_busy += busy;
      sample.gpus_fragmented += busy > 0 ? std::ssize(node.gpus) - busy : 0;
    }
    for (const auto& [id, order] : state_.waiting) {
      ++sample.jobs_waiting;
      sample.gpus_waiting += order.resources.gpus;
    }
    for (const std::size_t job : wide_waiting_) {
      ++sample.jobs_waiting;
      sample.gpus_waiting += jobs_[job].gpus;
    }
    run_.samples.push_back(sample);
  }

  const std::vector<TraceJob>& jobs_;
  const std::vector<Duration>& declared_;
  const ReplayCluster cluster_;
  core::State state_;
  Instant now_;
  std::size_t next_ = 0;  // of jobs_, to come
  std::int64_t unfinished_ = 0;
  std::vector<Progress> progress_;  // by job
  std::priority_queue<Planned, std::vector<Planned>, std::greater<>> planned_;
  std::queue<core::Command> reports_;  // of nodes and owners, for the present time
  std::map<std::string, AccountId> accounts_;
  std::map<GpuId, core::ReportGpu> gpus_;  // what its node says of a clean one
  std::map<LeaseId, std::size_t> job_of_;
  std::map<LeaseId, std::vector<GpuId>> held_;
  std::set<std::size_t> wide_waiting_;
  ReplayRun run_;
};

}  // namespace

ReplayRun replay_market(const std::vector<TraceJob>& jobs, const std::vector<Duration>& declared,
                        const ReplayCluster& cluster) {
  return Replay(jobs, declared, cluster).run();
}

}  // namespace bmgpu::sim
