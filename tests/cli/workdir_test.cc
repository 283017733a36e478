#include "cli/workdir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "temporary_folder.h"

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Workdir> scan(const TemporaryFolder& folder, const WorkdirLimits& limits = {}) {
  return scan_workdir(folder.path(), limits, [](std::int64_t) {});
}

std::vector<std::string> paths(const Result<Workdir>& workdir) {
  std::vector<std::string> paths;
  if (!workdir) {
    return {"error: " + workdir.error().message};
  }
  for (const WorkdirFile& file : workdir->files) {
    paths.push_back(file.path);
  }
  return paths;
}

TEST(WorkdirTest, NamesFilesByContent) {
  const TemporaryFolder folder;
  folder.write("b/run.sh", "#!/bin/sh\n");
  folder.write("a.txt", "abc");
  ASSERT_EQ(::chmod(folder.path("b/run.sh").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder.path("a.txt").c_str(), 0640), 0);
  Result<Workdir> workdir = scan(folder);
  ASSERT_TRUE(workdir) << workdir.error().message;
  ASSERT_THAT(paths(workdir), ElementsAre("a.txt", "b/run.sh"));
  EXPECT_EQ(wire::hex(workdir->files[0].sha256),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(workdir->files[0].size, 3);
  EXPECT_EQ(workdir->files[0].mode, 0640u);
  EXPECT_EQ(workdir->files[1].mode, 0755u);
  EXPECT_EQ(workdir->bytes, 13);
}

TEST(WorkdirTest, LeavesOutWhatIsIgnored) {
  const TemporaryFolder folder;
  folder.write(".git/config", "x");
  folder.write(".gitignore", "*.ckpt\n/data/\nnode_modules/\n");
  folder.write(".bmignore", "secret*\n!best.ckpt\n");
  for (const char* name : {"train.py", "last.ckpt", "best.ckpt", "data/big", "sub/data/small",
                           "sub/node_modules/x", "secret.txt", "sub/keep.tmp", "sub/drop.tmp"}) {
    folder.write(name, "x");
  }
  folder.write("sub/.gitignore", "*.tmp\n!keep.tmp\n");
  EXPECT_THAT(paths(scan(folder)),
              ElementsAre(".bmignore", ".gitignore", "best.ckpt", "sub/.gitignore",
                          "sub/data/small", "sub/keep.tmp", "train.py"));
}

TEST(WorkdirTest, KeepsLinksThatStayInsideAndFollowsNone) {
  const TemporaryFolder folder;
  folder.write("data/a", "x");
  std::filesystem::create_symlink("data", folder.path("link"));
  std::filesystem::create_symlink("../data/a", folder.path("data/up"));
  std::filesystem::create_symlink("nowhere", folder.path("dangling"));
  Result<Workdir> workdir = scan(folder);
  ASSERT_THAT(paths(workdir), ElementsAre("dangling", "data/a", "data/up", "link"));
  EXPECT_EQ(workdir->files[3].link_target, "data");
  EXPECT_EQ(workdir->bytes, 1);
}

TEST(WorkdirTest, RefusesLinksThatLeadOut) {
  for (const char* target : {"/etc/passwd", "..", "../x", "sub/../../x", "./../x"}) {
    const TemporaryFolder folder;
    folder.write("sub/a", "x");
    std::filesystem::create_symlink(target, folder.path("out"));
    EXPECT_THAT(paths(scan(folder)), ElementsAre(HasSubstr("the link out leads out"))) << target;
    folder.write(".bmignore", "/out\n");
    EXPECT_THAT(paths(scan(folder)), ElementsAre(".bmignore", "sub/a"));
  }
}

TEST(WorkdirTest, LinkTextsAreJudgedFromWhereTheLinkLies) {
  EXPECT_TRUE(link_stays_inside("a/b/l", "../../c"));
  EXPECT_FALSE(link_stays_inside("a/b/l", "../../../c"));
  EXPECT_TRUE(link_stays_inside("l", "a/../b"));
  EXPECT_FALSE(link_stays_inside("l", ""));
  EXPECT_FALSE(link_stays_inside("l", "/"));
  EXPECT_TRUE(link_stays_inside("a/l", ".././/x"));
}

TEST(WorkdirTest, SaysWhatHasNoContent) {
  const TemporaryFolder folder;
  folder.write("a", "x");
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  Result<Workdir> workdir = scan(folder);
  EXPECT_THAT(paths(workdir), ElementsAre("a"));
  ASSERT_EQ(workdir->left_out.size(), 1u);
  EXPECT_EQ(workdir->left_out[0].path, "pipe");
  EXPECT_EQ(workdir->left_out[0].why, "a pipe");
}

TEST(WorkdirTest, HoldsItsLimits) {
  const TemporaryFolder folder;
  folder.write("a", "12345");
  folder.write("b/c/d", "12345");
  EXPECT_THAT(paths(scan(folder, {.files_max = 2, .bytes_max = 10})), ElementsAre("a", "b/c/d"));
  EXPECT_THAT(paths(scan(folder, {.files_max = 1})), ElementsAre(HasSubstr("more than 1 files")));
  EXPECT_THAT(paths(scan(folder, {.bytes_max = 9})), ElementsAre(HasSubstr("more than 9B")));
  EXPECT_THAT(paths(scan(folder, {.depth_max = 1})), ElementsAre(HasSubstr("nested more than")));
  EXPECT_THAT(paths(scan(folder, {.path_bytes_max = 4})), ElementsAre(HasSubstr("longer than 4")));
}

TEST(WorkdirTest, RefusesNamesThatAreNoText) {
  const TemporaryFolder folder;
  folder.write("bad\xff", "x");
  EXPECT_THAT(paths(scan(folder)), ElementsAre(HasSubstr("bad\\xff is not valid UTF-8")));
}

// The market refuses them too, but only once everything is uploaded.
TEST(WorkdirTest, RefusesNamesThatTheMarketRefuses) {
  for (const char* name : {"a\nb", "tab\t", "esc\x1b[2J", "del\x7f"}) {
    const TemporaryFolder folder;
    folder.write(std::string("sub/") + name, "x");
    EXPECT_THAT(paths(scan(folder)), ElementsAre(HasSubstr("control character"))) << name;
    folder.write(".bmignore", "/sub/\n");
    EXPECT_THAT(paths(scan(folder)), ElementsAre(".bmignore"));
  }
  const TemporaryFolder folder;
  folder.write("in\nfolder/a", "x");
  EXPECT_THAT(paths(scan(folder)), ElementsAre(HasSubstr("in\\x0afolder")));
  const TemporaryFolder fine;
  fine.write("blank and \xe6\xbc\xa2'$;.txt", "x");
  EXPECT_THAT(paths(scan(fine)), ElementsAre("blank and \xe6\xbc\xa2'$;.txt"));
}

TEST(WorkdirTest, SaysWhatIsNoFolder) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a", "x");
  EXPECT_FALSE(scan_workdir(file, {}, [](std::int64_t) {}));
  EXPECT_FALSE(scan_workdir(folder.path("none"), {}, [](std::int64_t) {}));
}

}  // namespace
}  // namespace bmgpu::cli
