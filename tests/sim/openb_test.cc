// The published protocol, from arrivals to printed results.
#include "sim/openb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/openb_run.h"
#include "sim/policies/bm.h"
#include "sim/policies/dotprod.h"
#include "sim/text_file.h"

namespace bmgpu::sim {
namespace {

using testing::HasSubstr;

std::string some_nodes() {
  std::string rows;
  for (int node = 0; node < 6; ++node) {
    rows += "n" + std::to_string(node) + ",16000,1000," + (node < 4 ? "2,T4\n" : "4,G2\n");
  }
  return node_csv(rows);
}

std::string some_pods() {
  std::string rows;
  for (int pod = 0; pod < 20; ++pod) {
    const std::string name = "p" + std::to_string(pod + 10);
    rows += name + (pod % 5 == 0   ? ",2000,10,0,0,\n"
                    : pod % 5 == 1 ? ",2000,10,1,470,\n"
                    : pod % 5 == 2 ? ",1000,10,1,650,T4\n"
                    : pod % 5 == 3 ? ",1000,10,1,320,\n"
                                   : ",4000,10,2,1000,G2\n");
  }
  return pod_csv(rows);
}

OpenbTrace read(const std::string& nodes, const std::string& pods) {
  const TextFile node_file("nodes.csv", nodes);
  const TextFile pod_file("pods.csv", pods);
  auto trace = read_openb_trace(node_file.path(), pod_file.path());
  check(trace.ok(), "test: the trace is good");
  return *std::move(trace);
}

TEST(OpenbArrivalsTest, TheWholeListComesFirstThenDrawsUpToTheTarget) {
  const OpenbTrace trace = read(some_nodes(), some_pods());
  const OpenbArrivals arrivals = openb_arrivals(trace, 42);
  ASSERT_GE(arrivals.pods.size(), trace.pods.size());
  std::vector<std::size_t> first(arrivals.pods.begin(), arrivals.pods.begin() + 20);
  std::vector<std::size_t> list = trace.pods;
  std::sort(first.begin(), first.end());
  std::sort(list.begin(), list.end());
  EXPECT_EQ(first, list);
  std::int64_t asked = 0;
  for (const std::size_t pod : arrivals.pods) {
    asked += trace.requests[pod].gpu_thousandths();
  }
  EXPECT_LE(asked, 16 * 1300 + 1000);  // the last draw may ask for a second GPU
  EXPECT_GT(asked, 16 * 1300 - 1000);
}

TEST(OpenbArrivalsTest, ASeedIsItsOrder) {
  const OpenbTrace trace = read(some_nodes(), some_pods());
  const OpenbArrivals one = openb_arrivals(trace, 42);
  const OpenbArrivals again = openb_arrivals(trace, 42);
  const OpenbArrivals other = openb_arrivals(trace, 43);
  EXPECT_EQ(one.pods, again.pods);
  EXPECT_EQ(one.nodes, again.nodes);
  EXPECT_NE(one.pods, other.pods);
}

TEST(OpenbArrivalsTest, TypicalRequestsAreTheMostFrequentUpTo95Percent) {
  std::string rows;
  for (int pod = 0; pod < 100; ++pod) {
    rows += "p" + std::to_string(pod) +
            (pod < 60   ? ",1,1,1,1000,\n"
             : pod < 96 ? ",1,2,1,500,\n"
                        : ",1,3,1,100,\n");
  }
  const auto typical = typical_requests(read(some_nodes(), pod_csv(rows)));
  ASSERT_EQ(typical.size(), 2u);
  EXPECT_EQ(typical[0].count, 60);
  EXPECT_EQ(typical[1].request, (Request{1, 0, 1, 500, 0}));
}

TEST(OpenbRunTest, MeasuresWhatIsAllocatedAtFullLoad) {
  // 2 GPUs; 4 pods of one GPU each, the fourth of them for a model that is not there.
  const OpenbTrace trace =
      read(node_csv("a,8000,100,2,T4\n"),
           pod_csv("p1,1,1,1,1000,\np2,1,1,1,1000,\np3,1,1,0,0,\np4,9000,1,0,0,\n"));
  OpenbArrivals arrivals{{0}, trace.pods};
  DotProdPolicy policy;
  const OpenbOutcome all = run_openb(trace, arrivals, policy);
  EXPECT_DOUBLE_EQ(all.allocated_percent, 100);
  EXPECT_DOUBLE_EQ(all.cpu_only_placed, 2.0 / 3);  // none, one and one at three arrivals
  EXPECT_DOUBLE_EQ(all.cpu_only_arrived, 1);       // none, one and two
}

TEST(OpenbRunTest, WithoutAnArrivalAtFullLoadTheLastBelowItCounts) {
  // Arrived: 50 %, then 150 %.
  const OpenbTrace trace =
      read(node_csv("a,8000,100,2,T4\n"), pod_csv("p1,1,1,1,1000,\np2,1,1,2,1000,\n"));
  DotProdPolicy policy;
  EXPECT_DOUBLE_EQ(run_openb(trace, OpenbArrivals{{0}, trace.pods}, policy).allocated_percent, 50);
}

TEST(OpenbRunTest, PackingAndFragmentationEachChangeAResult) {
  std::string rows;
  for (int pod = 0; pod < 60; ++pod) {
    static const char* const kKinds[] = {",4000,1,1,470,\n",  ",2000,1,1,650,\n",
                                         ",3000,1,1,320,\n",  ",4000,1,1,1000,\n",
                                         ",8000,1,2,1000,\n", ",1000,1,1,230,\n"};
    rows += "p" + std::to_string(pod) + kKinds[pod * 7 % 6];
  }
  std::string nodes;
  for (int node = 0; node < 10; ++node) {
    nodes += "n" + std::to_string(node) + ",16000,1000,4,T4\n";
  }
  const OpenbTrace trace = read(node_csv(nodes), pod_csv(rows));
  const auto results = [&](core::RankPasses passes) {
    std::vector<double> all;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      BmPolicy policy(trace, passes);
      all.push_back(run_openb(trace, openb_arrivals(trace, seed), policy).allocated_percent);
    }
    return all;
  };
  const std::vector<double> with_all = results({});
  EXPECT_EQ(results({}), with_all);
  EXPECT_NE(results({.packing = false}), with_all);
  EXPECT_NE(results({.fragmentation = false}), with_all);
}

class OpenbCommandTest : public testing::Test {
 protected:
  OpenbOptions options(std::int64_t jobs) const {
    return {nodes_.path(), {pods_.path()}, "all", "42-44", jobs};
  }
  static void ignore(std::size_t, std::size_t) {}
  TextFile nodes_{"nodes.csv", some_nodes()};
  TextFile pods_{"openb_pod_list_small.csv", some_pods()};
};

TEST_F(OpenbCommandTest, ResultsDoNotDependOnThreads) {
  const auto one = run_openb_command(options(1), ignore);
  const auto three = run_openb_command(options(3), ignore);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(openb_json(*one, options(1)), openb_json(*three, options(3)));
  ASSERT_EQ(one->size(), all_policies().size());
  EXPECT_EQ((*one)[0].policy, "random");
  EXPECT_EQ((*one)[0].list, "small");
}

TEST_F(OpenbCommandTest, ReportsEachRunOnce) {
  std::vector<std::size_t> done;
  std::size_t all = 0;
  ASSERT_TRUE(run_openb_command(options(2), [&](std::size_t so_far, std::size_t runs) {
    done.push_back(so_far);
    all = runs;
  }));
  EXPECT_EQ(all, 3 * all_policies().size());
  EXPECT_EQ(done.size(), all);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST_F(OpenbCommandTest, PrintsConditionsWithEachResult) {
  OpenbOptions one = options(1);
  one.policy = "bm";
  const auto results = run_openb_command(one, ignore);
  ASSERT_TRUE(results);
  const std::string json = openb_json(*results, one);
  EXPECT_THAT(json, HasSubstr("{\"policy\":\"bm\",\"list\":\"small\",\"mean\":"));
  EXPECT_THAT(json, HasSubstr("\"seeds\":\"42-44\",\"nodes\":6,\"gpus\":16,\"pods\":20,"));
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 1);
  EXPECT_THAT(openb_table(*results), HasSubstr("small         bm "));
}

TEST_F(OpenbCommandTest, NamesWhatIsWrong) {
  OpenbOptions bad = options(1);
  bad.policy = "best";
  EXPECT_THAT(run_openb_command(bad, ignore).error().message,
              HasSubstr("there is no policy 'best'; there are: all, random, dotprod"));
  bad = options(1);
  bad.seeds = "9-1";
  EXPECT_THAT(run_openb_command(bad, ignore).error().message, HasSubstr("not '9-1'"));
  bad = options(1);
  bad.pod_files = {nodes_.path()};
  EXPECT_THAT(run_openb_command(bad, ignore).error().message, HasSubstr("no column 'name'"));
}

}  // namespace
}  // namespace bmgpu::sim
