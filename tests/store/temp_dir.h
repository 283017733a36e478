// A folder of its own for one test, gone afterwards. In memory where there is such a file system:
// these tests kill processes, not machines, and a disk's syncs would take most of their time. Set
// TEST_TMPDIR for another place.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace bmgpu::store {

class TempDir {
 public:
  TempDir() : path_(parent() + "store-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  static std::string parent() {
    const bool in_memory = getenv("TEST_TMPDIR") == nullptr && access("/dev/shm", W_OK) == 0;
    return in_memory ? "/dev/shm/" : testing::TempDir();
  }

  std::string path_;
};

}  // namespace bmgpu::store
