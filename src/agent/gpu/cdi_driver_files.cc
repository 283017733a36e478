// What of the real driver a container needs: found by number in proc/devices and by version in the
// library folders, never by guess.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "agent/gpu/cdi.h"
#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kProcBytesMax = std::size_t{1} << 20;
constexpr std::int32_t kControlMinor = 255;

// Libraries that CUDA programs load, and the soname link that each is found by.
struct Library {
  const char* name;
  const char* soname;
};
constexpr std::array<Library, 8> kLibraries = {
    {{"libcuda.so", "libcuda.so.1"},
     {"libnvidia-ml.so", "libnvidia-ml.so.1"},
     {"libnvidia-ptxjitcompiler.so", "libnvidia-ptxjitcompiler.so.1"},
     {"libnvidia-nvvm.so", "libnvidia-nvvm.so.4"},
     {"libnvidia-cfg.so", "libnvidia-cfg.so.1"},
     {"libnvidia-opencl.so", "libnvidia-opencl.so.1"},
     {"libnvcuvid.so", "libnvcuvid.so.1"},
     {"libnvidia-encode.so", "libnvidia-encode.so.1"}}};
constexpr std::array<const char*, 5> kFolders = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64",
    "/usr/lib", "/usr/local/nvidia/lib64"};
// Where programs in a container look without any configuration of their own.
constexpr const char* kContainerFolder = "/usr/lib/x86_64-linux-gnu/";
constexpr std::array<const char*, 3> kTools = {"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi",
                                               "/usr/local/nvidia/bin/nvidia-smi"};

bool is_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// The major number of a character driver in the text of proc/devices.
std::optional<std::int32_t> major_of(std::string_view devices, std::string_view driver) {
  const std::size_t blocks = devices.find("Block devices:");
  devices = devices.substr(0, blocks);
  while (!devices.empty()) {
    const std::size_t end = std::min(devices.find('\n'), devices.size());
    std::string_view line = devices.substr(0, end);
    devices.remove_prefix(std::min(end + 1, devices.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::int32_t number = 0;
    const auto [rest, code] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (code == std::errc() &&
        line.substr(static_cast<std::size_t>(rest - line.data())) == " " + std::string(driver)) {
      return number;
    }
  }
  return std::nullopt;
}

void add_libraries(const std::string& root, const std::string& version, CdiDriverFiles& files) {
  for (const Library& library : kLibraries) {
    const std::string versioned = std::string(library.name) + "." + version;
    for (const char* folder : kFolders) {
      const std::string host = std::string(folder) + "/" + versioned;
      if (is_file(root + host)) {
        files.mounts.push_back({host, kContainerFolder + versioned});
        files.mounts.push_back({host, kContainerFolder + std::string(library.soname)});
        break;
      }
    }
  }
}

}  // namespace

Result<CdiDriverFiles> find_driver_files(const std::string& root_folder,
                                         const std::string& driver_version) {
  const std::string root = root_folder == "/" ? "" : root_folder;
  Result<std::string> devices = read_small_file(root + "/proc/devices", kProcBytesMax);
  if (!devices) {
    return devices.error();
  }
  // Older drivers register as "nvidia-frontend".
  std::optional<std::int32_t> control = major_of(*devices, "nvidia");
  if (!control) {
    control = major_of(*devices, "nvidia-frontend");
  }
  if (!control) {
    return Error{ErrorCode::Unavailable,
                 "the nvidia kernel module is not loaded: " + root +
                     "/proc/devices does not name it; install the driver or run nvidia-modprobe"};
  }
  CdiDriverFiles files;
  files.nodes.push_back({"/dev/nvidiactl", *control, kControlMinor});
  // Its major is dynamic: another one after each boot.
  if (const std::optional<std::int32_t> uvm = major_of(*devices, "nvidia-uvm")) {
    files.nodes.push_back({"/dev/nvidia-uvm", *uvm, 0});
    files.nodes.push_back({"/dev/nvidia-uvm-tools", *uvm, 1});
  }
  add_libraries(root, driver_version, files);
  for (const char* tool : kTools) {
    if (is_file(root + tool)) {
      files.mounts.push_back({tool, "/usr/bin/nvidia-smi"});
      break;
    }
  }
  return files;
}

}  // namespace bmgpu::agent
