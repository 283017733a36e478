#include "agent/runtime/workdir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "agent/runtime/temp_dir.h"

namespace bmgpu::agent {
namespace {

class WorkdirTest : public testing::Test {
 protected:
  WorkdirTest() {
    EXPECT_TRUE(make_dirs(dir_.file("blobs")).ok());
    EXPECT_TRUE(make_dirs(dir_.file("outer/work")).ok());
    EXPECT_TRUE(write_file(dir_.file("blobs/" + hash_), "hello").ok());
  }
  Result<void> lay_out(const std::vector<WorkFileEntry>& files) {
    WorkdirOptions options;
    options.blob_dir = dir_.file("blobs");
    options.target = dir_.file("outer/work");
    options.uid = ::getuid();
    options.gid = ::getgid();
    return lay_out_workdir(files, options);
  }
  WorkFileEntry file(const std::string& path) { return {path, hash_, 5, 0644, ""}; }
  WorkFileEntry link(const std::string& path, const std::string& target) {
    return {path, "", 0, 0777, target};
  }
  std::string work(const std::string& path) { return dir_.file("outer/work/" + path); }

  const std::string hash_ = std::string(64, 'a');
  TempDir dir_;
};

TEST_F(WorkdirTest, LaysOutFilesFoldersModesAndLinks) {
  WorkFileEntry script = file("bin/run.sh");
  script.mode = 04755;
  ASSERT_TRUE(lay_out({file("a"), script, file("deep/er/b"), link("deep/up", "../a"),
                       link("deep/here", "er/./b")})
                  .ok());
  EXPECT_EQ(*read_file(work("a")), "hello");
  EXPECT_EQ(*read_file(work("deep/er/b")), "hello");
  EXPECT_EQ(*read_file(work("deep/up")), "hello");
  EXPECT_EQ(*read_file(work("deep/here")), "hello");
  struct stat info = {};
  ASSERT_EQ(::stat(work("bin/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);  // without the set-id bit
}

TEST_F(WorkdirTest, RefusesEveryPathThatIsNotInside) {
  for (const char* path :
       {"", "/etc/x", "../x", "a/../../x", "a/..", ".", "./a", "a//b", "a/", "/", ".."}) {
    Result<void> outcome = lay_out({file(path)});
    ASSERT_FALSE(outcome.ok()) << path;
    EXPECT_EQ(outcome.error().code, ErrorCode::InvalidArgument) << path;
  }
  EXPECT_FALSE(lay_out({file(std::string("a\0b", 3))}).ok());
  EXPECT_FALSE(lay_out({file(std::string(300, 'x'))}).ok());
  EXPECT_NE(::access(dir_.file("outer/x").c_str(), F_OK), 0);
}

TEST_F(WorkdirTest, RefusesLinksThatLeadOut) {
  for (const char* target : {"", "/etc/passwd", "..", "../x", "a/../../x", "sub/../../.."}) {
    Result<void> outcome = lay_out({link("a", target)});
    ASSERT_FALSE(outcome.ok()) << target;
    EXPECT_EQ(outcome.error().code, ErrorCode::InvalidArgument) << target;
  }
  EXPECT_TRUE(lay_out({link("sub/ok", "../fine")}).ok());
}

TEST_F(WorkdirTest, NoFileGoesThroughALink) {
  // Whatever the order they come in, and although the link itself stays inside.
  EXPECT_FALSE(lay_out({link("d", "e"), file("d/x")}).ok());
  ASSERT_EQ(::symlink("..", work("planted").c_str()), 0);
  Result<void> outcome = lay_out({file("planted/x")});
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(::access(dir_.file("outer/x").c_str(), F_OK), 0);
}

TEST_F(WorkdirTest, RefusesDuplicatesAndWrongContents) {
  EXPECT_FALSE(lay_out({file("a"), file("a")}).ok());
  EXPECT_NE(::access(work("a").c_str(), F_OK), 0);  // nothing is made before all is checked
  WorkFileEntry other = file("b");
  other.size = 6;
  EXPECT_EQ(lay_out({other}).error().code, ErrorCode::DataLoss);
  other.sha256_hex = std::string(64, 'b');
  EXPECT_EQ(lay_out({other}).error().code, ErrorCode::DataLoss);
  other.sha256_hex = "../" + hash_;
  EXPECT_EQ(lay_out({other}).error().code, ErrorCode::InvalidArgument);
  EXPECT_TRUE(lay_out({file("a")}).ok());
}

}  // namespace
}  // namespace bmgpu::agent
