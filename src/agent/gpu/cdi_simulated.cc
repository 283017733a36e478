// Device files of simulated GPUs: numbers of NVIDIA's own, with no driver behind them.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "agent/gpu/cdi.h"
#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

constexpr unsigned kNvidiaMajor = 195;
constexpr mode_t kMode = 0666;

std::string errno_text() { return std::strerror(errno); }

std::string name_of(std::int32_t minor) { return "nvidia" + std::to_string(minor); }

// Whether `path` is already the device that it shall be.
bool is_device(const std::string& path, std::int32_t minor) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode) &&
         status.st_rdev == makedev(kNvidiaMajor, static_cast<unsigned>(minor)) &&
         (status.st_mode & 07777) == kMode;
}

Result<void> make_device(const std::string& path, std::int32_t minor) {
  if (is_device(path, minor)) {
    return {};
  }
  unlink(path.c_str());
  const dev_t device = makedev(kNvidiaMajor, static_cast<unsigned>(minor));
  if (mknod(path.c_str(), S_IFCHR | kMode, device) != 0 || chmod(path.c_str(), kMode) != 0) {
    return Error{errno == EPERM ? ErrorCode::PermissionDenied : ErrorCode::Unavailable,
                 "cannot make the device file " + path + ": " + errno_text() +
                     "; simulated GPUs need root (CAP_MKNOD)"};
  }
  return {};
}

// Names of the form nvidia<N> in `dir`.
std::vector<std::string> present_devices(const std::string& dir) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(dir.c_str()), closedir);
  if (folder == nullptr) {
    return names;
  }
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with("nvidia") && name.size() > 6 &&
        std::all_of(name.begin() + 6, name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Result<void> ensure_simulated_devices(const std::string& dir,
                                      const std::vector<std::int32_t>& minors) {
  if (Result<void> folder = ensure_folder(dir); !folder) {
    return folder;
  }
  std::vector<std::string> wanted;
  for (const std::int32_t minor : minors) {
    wanted.push_back(name_of(minor));
    if (Result<void> made = make_device(dir + "/" + wanted.back(), minor); !made) {
      return made;
    }
  }
  for (const std::string& name : present_devices(dir)) {
    const std::string path = dir + "/" + name;
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end() &&
        unlink(path.c_str()) != 0) {
      return Error{ErrorCode::Unavailable, "cannot remove " + path + ": " + errno_text()};
    }
  }
  return {};
}

Result<void> remove_simulated_devices(const std::string& dir) {
  for (const std::string& name : present_devices(dir)) {
    const std::string path = dir + "/" + name;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return Error{ErrorCode::Unavailable, "cannot remove " + path + ": " + errno_text()};
    }
  }
  if (rmdir(dir.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY) {
    return Error{ErrorCode::Unavailable, "cannot remove " + dir + ": " + errno_text()};
  }
  return {};
}

}  // namespace bmgpu::agent
