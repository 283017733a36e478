#include "sim/replay/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace bmgpu::sim {
namespace {

constexpr double kMsPerSecond = 1000;
constexpr double kSlowdownDurationMs = 10'000;  // shorter jobs count as long as this

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (values.empty()) {
    return {};
  }
  const auto at = [&](std::size_t percent) {
    return values[std::max<std::size_t>((values.size() * percent + 99) / 100, 1) - 1];
  };
  return {mean_of(values), at(50), at(99)};
}

SizeClass size_class(const std::vector<TraceJob>& jobs, const ReplayRun& run, std::int64_t low,
                     std::int64_t high) {
  SizeClass one{.gpus_min = low, .gpus_max = high};
  std::vector<double> completion;
  std::vector<double> queueing;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const TraceJob& wanted = jobs[job];
    if (!run.jobs[job].finished || wanted.gpus < low || wanted.gpus > high) {
      continue;
    }
    const Duration all = *run.jobs[job].finished - wanted.submitted;
    completion.push_back(static_cast<double>(all.count()) / kMsPerSecond);
    queueing.push_back(static_cast<double>((all - wanted.duration).count()) / kMsPerSecond);
  }
  one.jobs = std::ssize(completion);
  one.completion_s = spread_of(std::move(completion));
  one.queueing_s = spread_of(std::move(queueing));
  return one;
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void add_use(const std::vector<TraceJob>& jobs, const ReplayRun& run, const ReplayCluster& cluster,
             ReplayReport& report) {
  const Instant begin = jobs.front().submitted;
  struct Sum {
    std::int64_t samples = 0, busy = 0, fragmented = 0, waiting = 0;
    void add(const ClusterSample& sample) {
      ++samples;
      busy += sample.gpus_busy;
      fragmented += sample.gpus_fragmented;
      waiting += sample.jobs_waiting;
    }
  };
  Sum submitting;
  std::map<std::int64_t, Sum> days;
  for (const ClusterSample& sample : run.samples) {
    days[(sample.at - begin).count() / hours(24).count()].add(sample);
    if (sample.at <= jobs.back().submitted) {
      submitting.add(sample);
    }
  }
  const auto free = [&](const Sum& sum) { return sum.samples * cluster.gpus() - sum.busy; };
  for (const auto& [number, sum] : days) {
    report.days.push_back({number, percent(sum.busy, sum.samples * cluster.gpus()),
                           percent(sum.fragmented, free(sum)),
                           static_cast<double>(sum.waiting) / static_cast<double>(sum.samples)});
  }
  report.allocated_percent = percent(submitting.busy, submitting.samples * cluster.gpus());
  report.fragmented_percent = percent(submitting.fragmented, free(submitting));
}

void add_prices(const ReplayRun& run, ReplayReport& report) {
  std::vector<double> prices;
  std::vector<double> changes;
  for (const Price price : run.slot_prices) {
    prices.push_back(static_cast<double>(micros_per_gpu_hour(price)) / 1e6);
    if (prices.size() > 1) {
      changes.push_back(100 * (prices.back() / prices[prices.size() - 2] - 1));
    }
  }
  report.price_mean = mean_of(prices);
  const double middle = mean_of(changes);
  for (double& change : changes) {
    change = (change - middle) * (change - middle);
  }
  report.price_volatility_percent = std::sqrt(mean_of(changes));
}

void add_fairness(const std::vector<TraceJob>& jobs, const ReplayRun& run, ReplayReport& report) {
  std::map<std::string, std::vector<double>> of_account;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if (run.jobs[job].finished) {
      const auto all = (*run.jobs[job].finished - jobs[job].submitted).count();
      const auto work = static_cast<double>(jobs[job].duration.count());
      of_account[jobs[job].account].push_back(
          std::max(1.0, static_cast<double>(all) / std::max(work, kSlowdownDurationMs)));
    }
  }
  std::vector<double> means;
  for (const auto& [account, slowdowns] : of_account) {
    means.push_back(mean_of(slowdowns));
  }
  if (means.empty()) {
    return;
  }
  double differences = 0;
  for (const double a : means) {
    for (const double b : means) {
      differences += std::abs(a - b);
    }
  }
  const double mean = mean_of(means);
  const auto count = static_cast<double>(means.size());
  report.slowdown_gini = differences / (2 * count * count * mean);
  report.slowdown_worst = *std::max_element(means.begin(), means.end()) / mean;
}

}  // namespace

ReplayReport report_of(const std::vector<TraceJob>& jobs, const ReplayRun& run,
                       const ReplayCluster& cluster) {
  ReplayReport report;
  report.jobs = std::ssize(jobs);
  report.all = size_class(jobs, run, 1, JobTraceLimits::kGpusMax);
  report.refused = report.jobs - report.all.jobs;
  for (std::int64_t high = 1; high <= JobTraceLimits::kGpusMax; high *= 2) {
    SizeClass one = size_class(jobs, run, high / 2 + 1, high);
    if (one.jobs > 0) {
      report.classes.push_back(std::move(one));
    }
  }
  if (jobs.empty()) {
    return report;
  }
  Instant last = jobs.front().submitted;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if (run.jobs[job].finished) {
      last = std::max(last, *run.jobs[job].finished);
      report.gpu_hours +=
          static_cast<double>(jobs[job].duration.count() * jobs[job].gpus) / 3'600'000;
    }
  }
  report.makespan_s = static_cast<double>((last - jobs.front().submitted).count()) / kMsPerSecond;
  report.gpu_hours_lost = run.gpu_hours_lost;
  report.leases_cut = run.leases_cut;
  report.revenue = static_cast<double>(run.revenue.count()) / 1e6;
  add_use(jobs, run, cluster, report);
  add_prices(run, report);
  add_fairness(jobs, run, report);
  return report;
}

}  // namespace bmgpu::sim
