// A file in the test's own folder, gone with the object.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bmgpu::sim {

class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text) {
    std::string folder = (std::filesystem::temp_directory_path() / "bmsim-test-XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
    path_ = folder_ + "/" + name;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() { std::filesystem::remove_all(folder_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

inline std::string node_csv(const std::string& rows) {
  return "sn,cpu_milli,memory_mib,gpu,model\n" + rows;
}
inline std::string pod_csv(const std::string& rows) {
  return "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + rows;
}

}  // namespace bmgpu::sim
