#include "agent/host/durable_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace bmgpu::agent {
namespace {

class DurableFileTest : public ::testing::Test {
 protected:
  DurableFileTest() {
    folder_ = (std::filesystem::temp_directory_path() / "bmgpu-file-XXXXXX").string();
    check(mkdtemp(folder_.data()) != nullptr, "no temporary folder");
  }
  ~DurableFileTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(DurableFileTest, ReplacesWithTheModeAskedForAndLeavesNoTemporary) {
  const std::string path = folder_ + "/secret";
  ASSERT_TRUE(replace_file(path, "one", 0600).ok());
  ASSERT_TRUE(replace_file(path, "two", 0600).ok());
  EXPECT_EQ(read_small_file(path, 3).value(), "two");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(DurableFileTest, ErrorsAreToldApart) {
  EXPECT_EQ(read_small_file(folder_ + "/none", 10).error().code, ErrorCode::NotFound);
  EXPECT_EQ(replace_file(folder_ + "/none/file", "x").error().code, ErrorCode::NotFound);
  ASSERT_TRUE(replace_file(folder_ + "/four", "four").ok());
  EXPECT_EQ(read_small_file(folder_ + "/four", 3).error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(replace_file(folder_, "over a folder").ok(), false);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(DurableFileTest, EnsuresFoldersAndRefusesAFileInTheirPlace) {
  EXPECT_TRUE(ensure_folder(folder_ + "/a/b/c").ok());
  EXPECT_TRUE(ensure_folder(folder_ + "/a/b/c").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/a/b/c"));
  ASSERT_TRUE(replace_file(folder_ + "/a/file", "x").ok());
  EXPECT_EQ(ensure_folder(folder_ + "/a/file").error().code, ErrorCode::AlreadyExists);
}

}  // namespace
}  // namespace bmgpu::agent
