// A folder that a test fills and that is gone afterwards.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"

namespace bmgpu::cli {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "bmcli-test-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "test: no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& below = "") const {
    return below.empty() ? path_.string() : (path_ / below).string();
  }
  // Writes a file and the folders it needs; returns its path.
  std::string write(const std::string& below, const std::string& text) const {
    std::filesystem::create_directories((path_ / below).parent_path());
    std::ofstream(path_ / below, std::ios::binary) << text;
    return path(below);
  }
  std::string read(const std::string& below) const {
    std::ifstream file(path_ / below, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace bmgpu::cli
