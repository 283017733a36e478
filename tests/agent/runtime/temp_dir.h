// A folder of a test's own, removed with everything in it at the end.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "agent/runtime/files.h"

namespace bmgpu::agent {

class TempDir {
 public:
  TempDir() {
    std::string pattern = "/tmp/bm-runtime-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { (void)remove_tree(path_).ok(); }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace bmgpu::agent
