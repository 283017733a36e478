#include "controld/blob_sweeper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace bmgpu::controld {
namespace {

namespace fs = std::filesystem;

TEST(BlobSweeperTest, RemovesOnlyWhatNobodyHasWantedForLong) {
  const fs::path folder = fs::path(testing::TempDir()) / ("blobs-" + std::to_string(getpid()));
  fs::create_directories(folder / "tmp");
  const auto long_ago = fs::file_time_type::clock::now() - BlobSweeper::kKept;
  for (const char* name : {"old", "touched", "fresh"}) {
    std::ofstream(folder / name) << "x";
  }
  for (const char* name : {"old", "touched"}) {
    fs::last_write_time(folder / name, long_ago - std::chrono::hours(1));
  }
  EXPECT_TRUE(touch_blob(folder / "touched"));
  EXPECT_FALSE(touch_blob(folder / "absent"));
  EXPECT_EQ(sweep_blobs(folder), 1U);
  EXPECT_FALSE(fs::exists(folder / "old"));
  EXPECT_TRUE(fs::exists(folder / "touched"));
  EXPECT_TRUE(fs::exists(folder / "fresh"));
  EXPECT_TRUE(fs::exists(folder / "tmp"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace bmgpu::controld
