// Small traces whose outcome is known by hand, on the market's own core and on the schedulers.
#include "sim/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "sim/replay/command.h"
#include "sim/replay/report.h"
#include "sim/text_file.h"

namespace bmgpu::sim {
namespace {

using testing::HasSubstr;

constexpr Instant kStart{1'500'003'000'000};

TraceJob job(std::int64_t submit_s, std::int64_t duration_s, std::int64_t gpus) {
  return {kStart + seconds(submit_s), seconds(duration_s), gpus, "a", std::nullopt};
}
std::vector<Duration> exact(const std::vector<TraceJob>& jobs) {
  std::vector<Duration> declared;
  for (const TraceJob& one : jobs) {
    declared.push_back(one.duration);
  }
  return declared;
}
std::vector<std::int64_t> starts(const ReplayRun& run) {
  std::vector<std::int64_t> all;
  for (const JobOutcome& one : run.jobs) {
    all.push_back(one.started ? (*one.started - kStart).count() / 1000 : -1);
  }
  return all;
}
// Jobs that did not run from their start to their end in one piece.
std::int64_t in_pieces(const std::vector<TraceJob>& jobs, const ReplayRun& run) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    count += run.jobs[i].finished != *run.jobs[i].started + jobs[i].duration ? 1 : 0;
  }
  return count;
}

TEST(ReplayTest, WaitingJobsStartShortestFirstAsGpusComeFree) {
  const std::vector<TraceJob> jobs{job(0, 100, 2), job(1, 500, 2), job(2, 200, 2), job(3, 300, 2)};
  const ReplayRun run = replay_market(jobs, exact(jobs), {1, 2});
  EXPECT_THAT(starts(run), testing::ElementsAre(0, 600, 100, 300));
  EXPECT_EQ(in_pieces(jobs, run), 0);
  EXPECT_THAT(starts(replay_scheduler(jobs, exact(jobs), {1, 2}, Discipline::Shortest)),
              testing::ElementsAre(0, 600, 100, 300));
  EXPECT_THAT(starts(replay_scheduler(jobs, exact(jobs), {1, 2}, Discipline::Fifo)),
              testing::ElementsAre(0, 100, 600, 800));
}

TEST(ReplayTest, WhatIsOverDeclaredFreesItsGpusWhenItEnds) {
  const std::vector<TraceJob> jobs{job(0, 100, 2), job(1, 100, 2)};
  const ReplayRun run = replay_market(jobs, {seconds(500), seconds(300)}, {1, 2});
  EXPECT_THAT(starts(run), testing::ElementsAre(0, 100));
  EXPECT_EQ(run.leases_cut, 0);
}

TEST(ReplayTest, AWideJobWaitsForAllOfItsNodesAndRunsOnThemAtOnce) {
  const std::vector<TraceJob> jobs{job(0, 1000, 1), job(1, 5000, 4), job(2, 100, 1)};
  const ReplayRun run = replay_market(jobs, exact(jobs), {2, 2});
  // The second node is free at once, the first at 1000 s; the next quarter hour begins at 1800 s.
  EXPECT_THAT(starts(run), testing::ElementsAre(0, 1800, 2));
  EXPECT_EQ(in_pieces(jobs, run), 0);
  EXPECT_EQ(run.jobs[1].leases, 2);
  EXPECT_EQ(run.gpu_hours_lost, 0);
  EXPECT_THAT(starts(replay_scheduler(jobs, exact(jobs), {2, 2}, Discipline::Fifo)),
              testing::ElementsAre(0, 1000, 2));
}

TEST(ReplayTest, AJobLongerThanALeaseGoesOnInAnother) {
  const std::vector<TraceJob> jobs{job(0, 40 * 86'400, 1), job(10, 60, 3)};
  const ReplayRun run = replay_market(jobs, exact(jobs), {1, 2});
  EXPECT_EQ(run.jobs[0].finished, kStart + seconds(40 * 86'400));
  EXPECT_EQ(run.jobs[0].leases, 2);
  EXPECT_EQ(run.leases_cut, 1);
  EXPECT_FALSE(run.jobs[1].finished);  // wider than the cluster
  EXPECT_EQ(report_of(jobs, run, {1, 2}).refused, 1);
}

TEST(ReplayTest, EveryJobOfARandomTraceRunsInOnePieceAndNoGpuTwice) {
  Prng random(5);
  std::vector<TraceJob> jobs;
  std::vector<Duration> declared;
  for (std::int64_t i = 0; i < 600; ++i) {
    jobs.push_back(job(i * 60, random.between(1, 4000), random.between(1, 12)));
    declared.push_back(jobs.back().duration * random.between(1, 4));
  }
  const ReplayRun run = replay_market(jobs, declared, {6, 4});
  EXPECT_EQ(in_pieces(jobs, run), run.leases_cut);
  for (const TraceJob& one : jobs) {
    std::int64_t busy = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const bool runs =
          run.jobs[i].started <= one.submitted && one.submitted < run.jobs[i].finished;
      busy += runs ? jobs[i].gpus : 0;
    }
    EXPECT_LE(busy, 24);
  }
  EXPECT_EQ(starts(replay_market(jobs, declared, {6, 4})), starts(run));
}

TEST(ReportTest, SaysWhatWasWaitedFor) {
  const std::vector<TraceJob> jobs{job(0, 100, 1), job(0, 300, 3)};
  ReplayRun run;
  run.jobs = {{kStart, kStart + seconds(100), 1},
              {kStart + seconds(200), kStart + seconds(500), 1}};
  run.samples = {{kStart, 3, 1, 1, 3}};
  const ReplayReport report = report_of(jobs, run, {2, 4});
  EXPECT_EQ(report.all.completion_s.average, 300);
  EXPECT_EQ(report.all.completion_s.p50, 100);
  EXPECT_EQ(report.all.completion_s.p99, 500);
  EXPECT_EQ(report.all.queueing_s.average, 100);
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[1].gpus_min, 3);
  EXPECT_EQ(report.classes[1].gpus_max, 4);
  EXPECT_EQ(report.makespan_s, 500);
  EXPECT_EQ(report.allocated_percent, 37.5);
  EXPECT_EQ(report.fragmented_percent, 20);
}

class ReplayCommandTest : public testing::Test {
 protected:
  std::string error_of(ReplayOptions options) {
    const auto result = run_replay_command(options);
    return result ? "" : result.error().message;
  }
  TextFile trace_{"jobs.csv", "submit_s,duration_s,gpus,account\n0,100,1,a\n90000,50,2,b\n"};
  ReplayOptions good_{.trace = trace_.path(), .format = "csv", .nodes = 1, .gpus_per_node = 2};
};

TEST_F(ReplayCommandTest, KeepsTheJobsOfAnInterval) {
  EXPECT_EQ(run_replay_command(good_)->report.jobs, 2);
  good_.from = "1970-01-02";
  EXPECT_EQ(run_replay_command(good_)->report.jobs, 1);
}

TEST_F(ReplayCommandTest, NamesWhatIsWrong) {
  EXPECT_EQ(error_of(good_), "");
  const auto with = [&](std::string ReplayOptions::*field, const char* value) {
    ReplayOptions bad = good_;
    bad.*field = value;
    return error_of(bad);
  };
  EXPECT_THAT(with(&ReplayOptions::format, "xls"), HasSubstr("there is no format 'xls'"));
  EXPECT_THAT(with(&ReplayOptions::scheduler, "x"), HasSubstr("there are: market, fifo, sjf"));
  EXPECT_THAT(with(&ReplayOptions::from, "soon"), HasSubstr("'soon' is not a time"));
  EXPECT_THAT(with(&ReplayOptions::until, "1970-01-01"), HasSubstr("no job is left"));
  EXPECT_THAT(with(&ReplayOptions::trace, "/nowhere"), HasSubstr("cannot be opened"));
  for (const char* bad :
       {"", "loguniform:", "loguniform:0-5", "loguniform:5-1", "loguniform:1-5x"}) {
    EXPECT_THAT(with(&ReplayOptions::declared, bad), HasSubstr("--declared is")) << bad;
  }
  EXPECT_EQ(with(&ReplayOptions::declared, "loguniform:1-5"), "");
}

}  // namespace
}  // namespace bmgpu::sim
