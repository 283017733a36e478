#include "agent/own_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace bmgpu::agent {

std::string own_program() {
  constexpr const char* kRunning = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(kRunning, error);
  const bool there = !error && access(path.c_str(), X_OK) == 0;
  return there ? path.string() : kRunning;
}

}  // namespace bmgpu::agent
