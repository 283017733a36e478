// Traces of jobs: what is accepted, and that bad input is named by file, line and column.
#include "sim/replay/job_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/csv.h"
#include "sim/text_file.h"

namespace bmgpu::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Instant at(std::int64_t s) { return Instant() + seconds(s); }

std::vector<TraceJob> jobs_of(const std::string& text, JobTraceFormat format) {
  const TextFile file("jobs", text);
  const auto jobs = read_job_trace(file.path(), format);
  EXPECT_TRUE(jobs) << jobs.error().message;
  return jobs ? *jobs : std::vector<TraceJob>();
}
std::string error_of(const std::string& text, JobTraceFormat format) {
  const TextFile file("jobs", text);
  const auto jobs = read_job_trace(file.path(), format);
  return jobs ? "" : jobs.error().message;
}
std::string csv(const std::string& rows) { return "submit_s,duration_s,gpus,account\n" + rows; }
// A line of SWF: submit, run time, processors, requested time.
std::string swf(const std::string& submit, const std::string& run, const std::string& processors,
                const std::string& requested) {
  return "1 " + submit + " -1 " + run + " " + processors + " -1 -1 -1 " + requested +
         " -1 1 7 -1 -1 -1 -1 -1 -1\n";
}

TEST(JobTraceTest, PhillyIsSortedByItsReader) {
  EXPECT_THAT(jobs_of("timestamp,duration,num_gpus,gpu_time,cluster\n"
                      "1970-01-02 00:00:01,20.5,8,164.0,b\n1970-01-01 00:00:10,1.0,1,1.0,a\n",
                      JobTraceFormat::Philly),
              ElementsAre(TraceJob{at(10), seconds(1), 1, "a", {}},
                          TraceJob{at(86'401), milliseconds(20'500), 8, "b", {}}));
}

TEST(JobTraceTest, GavelLeavesOutWhatHasNoTimeOnItsGpu) {
  EXPECT_THAT(jobs_of("vc,arrival_s,job_type,gpus,total_steps,v100_s,p100_s,k80_s\n"
                      "x,30,A,1,5,10,,\ny,20,B,2,5,,,\nz,10,C,4,5,7,,\n",
                      JobTraceFormat::Gavel),
              ElementsAre(TraceJob{at(10), seconds(7), 4, "z", {}},
                          TraceJob{at(30), seconds(10), 1, "x", {}}));
}

TEST(JobTraceTest, SwfSkipsCommentsAndWhatNeverRan) {
  EXPECT_THAT(jobs_of("; Version: 2.2\n\n" + swf("5", "60", "2", "600") + swf("6", "-1", "2", "9") +
                          swf("7", "1.25", "1", "-1"),
                      JobTraceFormat::Swf),
              ElementsAre(TraceJob{at(5), seconds(60), 2, "7", seconds(600)},
                          TraceJob{at(7), seconds(1), 1, "7", {}}));
}

TEST(JobTraceTest, OurOwnMayDeclareTimes) {
  EXPECT_THAT(
      jobs_of("submit_s,duration_s,gpus,account,declared_s\n0,1.5,1,a,9\n", JobTraceFormat::Csv),
      ElementsAre(TraceJob{at(0), milliseconds(1500), 1, "a", seconds(9)}));
}

TEST(JobTraceTest, NamesLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(error_of(csv("5,1,1,a\n5,1,1,a\n"), JobTraceFormat::Csv), "");
  EXPECT_THAT(error_of(csv("5,1,1,a\n4,1,1,a\n"), JobTraceFormat::Csv),
              HasSubstr("jobs:3: column 'submit_s': earlier than the row before"));
  EXPECT_THAT(error_of(csv("5,-1,1,a\n"), JobTraceFormat::Csv),
              HasSubstr("jobs:2: column 'duration_s': '-1' is not a number of seconds above 0"));
  EXPECT_THAT(error_of(csv("5,-0.5,1,a\n"), JobTraceFormat::Csv), HasSubstr("'-0.5'"));
  EXPECT_THAT(error_of(csv("5,1,0,a\n"), JobTraceFormat::Csv), HasSubstr("jobs:2: column 'gpus'"));
  EXPECT_THAT(error_of("submit_s,gpus,account\n", JobTraceFormat::Csv),
              HasSubstr("jobs:1: no column 'duration_s'"));
  EXPECT_THAT(error_of("timestamp,duration,num_gpus,cluster\n2017-13-01 00:00:00,1,1,a\n",
                       JobTraceFormat::Philly),
              HasSubstr("jobs:2: column 'timestamp': not a time"));
  EXPECT_THAT(error_of(swf("9", "1", "1", "1") + swf("8", "1", "1", "1"), JobTraceFormat::Swf),
              HasSubstr("jobs:2: column 2 (submit time): earlier"));
  EXPECT_THAT(error_of(swf("9", "-7", "1", "1"), JobTraceFormat::Swf),
              HasSubstr("jobs:1: column 4 (run time): "));
  EXPECT_THAT(error_of(swf("9", "1", "x", "1"), JobTraceFormat::Swf),
              HasSubstr("jobs:1: column 5 (processors): not a number"));
  EXPECT_THAT(error_of("1 2 3\n", JobTraceFormat::Swf), HasSubstr("jobs:1: 3 fields"));
}

TEST(JobTraceTest, AMillionLinesOfGarbageEndAtTheFirst) {
  std::string garbage;
  for (int line = 0; line < 1'000'000; ++line) {
    garbage += "\x01garbage\n";
  }
  EXPECT_THAT(error_of(garbage, JobTraceFormat::Swf), HasSubstr("jobs:1: column 1"));
  EXPECT_THAT(error_of(garbage, JobTraceFormat::Philly), HasSubstr("jobs:1: no column"));
  std::string blank(std::size_t{CsvLimits::kRowsMax} + 1, '\n');
  EXPECT_THAT(error_of(blank, JobTraceFormat::Swf), HasSubstr("more than 1000000 lines"));
}

TEST(JobTraceTest, TimesAreUtc) {
  EXPECT_EQ(parse_time("1970-01-02"), at(86'400));
  EXPECT_EQ(parse_time("2017-10-01 13:30:05"), at(1'506'864'605));
  for (const char* bad : {"", "2017", "2017-10-32", "2017-10-01 ", "2017-10-01 24:00:00",
                          "2017-10-01 13:30", "2017-10-01 13:30:05x", "2017-1-01"}) {
    EXPECT_FALSE(parse_time(bad)) << bad;
  }
}

}  // namespace
}  // namespace bmgpu::sim
