#include "controld/validate.h"

#include <gtest/gtest.h>

#include "bmgpu/v1/market.pb.h"

namespace bmgpu::controld {
namespace {

v1::JobSpec job() {
  v1::JobSpec job;
  job.set_image("pytorch:2.0");
  job.add_command("python");
  job.add_command("train.py --lr 0.1; echo $HOME");
  return job;
}

TEST(ValidateTest, ImageReferences) {
  for (const char* good :
       {"pytorch:2.0", "localhost/bm-pytorch:2.0", "localhost:5000/team/image",
        "docker.io/library/busybox:latest",
        "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}) {
    EXPECT_TRUE(check_image(good)) << good;
  }
  for (const char* bad : {"", "-v=/:/x", "a b", "a;b", "a$(b)", "a/", "/a", "a//b", "a:", "a:b/c:",
                          "a@sha256:12", "a@md5:00", "../a", "a|b", "a\nb", "a'b", "host:x/a"}) {
    EXPECT_FALSE(check_image(bad)) << bad;
  }
}

TEST(ValidateTest, CommandsAreDataWithinLimits) {
  EXPECT_TRUE(check_job(job()));
  v1::JobSpec long_argument = job();
  long_argument.add_command(std::string(JobLimits::kArgumentBytesMax + 1, 'x'));
  EXPECT_FALSE(check_job(long_argument));
  v1::JobSpec long_command = job();
  for (int i = 0; i < 9; ++i) {
    long_command.add_command(std::string(JobLimits::kArgumentBytesMax, 'x'));
  }
  EXPECT_FALSE(check_job(long_command));
  v1::JobSpec with_nul = job();
  with_nul.add_command(std::string("a\0b", 3));
  EXPECT_FALSE(check_job(with_nul));
  v1::JobSpec not_utf8 = job();
  not_utf8.add_command("\xff\xfe");
  EXPECT_FALSE(check_job(not_utf8));
}

TEST(ValidateTest, EnvironmentNames) {
  EXPECT_TRUE(check_env_name("HOME_2"));
  for (const char* bad : {"", "2A", "A B", "A=B", "Ä"}) {
    EXPECT_FALSE(check_env_name(bad)) << bad;
  }
  v1::JobSpec twice = job();
  twice.add_env()->set_name("A");
  EXPECT_TRUE(check_job(twice));
  twice.add_env()->set_name("A");
  EXPECT_FALSE(check_job(twice));
}

TEST(ValidateTest, WorkPathsStayInside) {
  for (const char* good : {"a", "a/b.py", ".hidden", "a..b", "日本"}) {
    EXPECT_TRUE(check_work_path(good)) << good;
  }
  for (const char* bad : {"", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\nb"}) {
    EXPECT_FALSE(check_work_path(bad)) << bad;
  }
  EXPECT_TRUE(check_link("a/b", "../c"));
  EXPECT_FALSE(check_link("a/b", "../../c"));
  EXPECT_FALSE(check_link("a", "/etc/passwd"));
  EXPECT_FALSE(check_link("a", "x/../../y"));
}

TEST(ValidateTest, WorkFilesNeedTheirHashAndAreNotFolders) {
  v1::JobSpec with = job();
  v1::WorkFile& file = *with.add_workdir();
  file.set_path("a");
  EXPECT_FALSE(check_job(with));
  file.set_sha256(std::string(32, 'x'));
  EXPECT_TRUE(check_job(with));
  v1::WorkFile& inside = *with.add_workdir();
  inside.set_path("a/b");
  inside.set_sha256(std::string(32, 'x'));
  EXPECT_FALSE(check_job(with));
  inside.set_path("a");
  EXPECT_FALSE(check_job(with));
}

TEST(ValidateTest, Resources) {
  v1::Resources resources;
  EXPECT_FALSE(check_resources(resources));
  resources.set_gpus(8);
  EXPECT_TRUE(check_resources(resources));
  resources.set_gpu("A100 80GB");
  EXPECT_TRUE(check_resources(resources));
  resources.set_gpu("A100;x");
  EXPECT_FALSE(check_resources(resources));
  resources.set_gpu("");
  resources.set_memory_mib(-1);
  EXPECT_FALSE(check_resources(resources));
}

}  // namespace
}  // namespace bmgpu::controld
