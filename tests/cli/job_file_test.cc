#include "cli/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string mistake(std::string_view text) {
  Result<JobFile> job = parse_job_file(text, "jobs/job.yaml");
  return job ? "none" : job.error().message;
}

TEST(JobFileTest, ReadsEveryKey) {
  Result<JobFile> job = parse_job_file(R"(
name: train
image: pytorch:2.0
command: python train.py --lr 0.1
gpus: 2
gpu: A100
min_mem: 40G
duration: 2h
cpus: 2.5
memory: 64G
scratch: 100G
max_price: 1.20
network: none
restart: never
workdir: src
wait: false
env: {EPOCHS: 3, NAME: "a b"}
env_from: [HF_TOKEN]
env_files: [secrets.env, /etc/job.env]
)",
                                       "jobs/job.yaml");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT(job->values, UnorderedElementsAre(
                               Pair("name", "train"), Pair("image", "pytorch:2.0"),
                               Pair("command", "python train.py --lr 0.1"), Pair("gpus", "2"),
                               Pair("gpu", "A100"), Pair("min-mem", "40G"), Pair("duration", "2h"),
                               Pair("cpus", "2.5"), Pair("memory", "64G"), Pair("scratch", "100G"),
                               Pair("max-price", "1.20"), Pair("network", "none"),
                               Pair("restart", "never"), Pair("workdir", "jobs/src")));
  EXPECT_TRUE(job->no_wait);
  EXPECT_THAT(job->env, ElementsAre(Pair("EPOCHS", "3"), Pair("NAME", "a b")));
  EXPECT_THAT(job->env_from, ElementsAre("HF_TOKEN"));
  EXPECT_THAT(job->env_files, ElementsAre("jobs/secrets.env", "/etc/job.env"));
}

TEST(JobFileTest, ArgvIsTakenWordByWord) {
  Result<JobFile> job = parse_job_file("argv: [python, -c, 'print(1)']\n", "job.yaml");
  ASSERT_TRUE(job);
  EXPECT_THAT(job->argv, ElementsAre("python", "-c", "print(1)"));
  EXPECT_FALSE(job->no_wait);
  EXPECT_THAT(mistake("argv: [a]\ncommand: b\n"), HasSubstr("stands beside command"));
}

TEST(JobFileTest, MistakesNameTheNearestKeyAndTheLine) {
  EXPECT_THAT(mistake("image: x\ngpuss: 2\n"), HasSubstr("jobs/job.yaml:2"));
  EXPECT_THAT(mistake("gpuss: 2\n"), HasSubstr("did you mean gpus"));
  EXPECT_THAT(mistake("max-price: 1\n"), HasSubstr("did you mean max_price"));
  EXPECT_NE(mistake("gpus: [1]\n"), "none");
  EXPECT_NE(mistake("wait: maybe\n"), "none");
  EXPECT_NE(mistake("a: : b\n"), "none");
  EXPECT_NE(mistake("- a\n"), "none");
  EXPECT_NE(mistake("image: \"\xff\"\n"), "none");
  EXPECT_EQ(mistake(""), "none");
}

}  // namespace
}  // namespace bmgpu::cli
