#include "agent/gpu/nvml_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

namespace bmgpu::agent {
namespace {

// Older symbols with the same layout, tried where the first one is missing.
struct Alias {
  const char* symbol;
  const char* older;
};
constexpr std::array<Alias, 5> kAliases = {{
    {"nvmlInit_v2", "nvmlInit"},
    {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
    {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
    {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"},
    {"nvmlEventSetWait_v2", "nvmlEventSetWait"},
}};

void* resolve(void* handle, const std::string& symbol) {
  if (void* found = dlsym(handle, symbol.c_str()); found != nullptr) {
    return found;
  }
  for (const Alias& alias : kAliases) {
    if (symbol == alias.symbol) {
      return dlsym(handle, alias.older);
    }
  }
  return nullptr;
}

}  // namespace

NvmlStatus nvml_status(nvml::Return code) {
  switch (code) {
    case nvml::kSuccess:
      return NvmlStatus::Ok;
    case nvml::kNotSupported:
    case nvml::kFunctionNotFound:
      return NvmlStatus::Absent;
    case nvml::kNoPermission:
      return NvmlStatus::Denied;
    case nvml::kNotFound:
      return NvmlStatus::NotFound;
    case nvml::kInsufficientSize:
      return NvmlStatus::TooSmall;
    case nvml::kDriverNotLoaded:
      return NvmlStatus::NotLoaded;
    case nvml::kTimeout:
      return NvmlStatus::Timeout;
    case nvml::kGpuIsLost:
      return NvmlStatus::Lost;
    case nvml::kResetRequired:
      return NvmlStatus::ResetRequired;
    case nvml::kOperatingSystem:
      return NvmlStatus::Blocked;
    case nvml::kVersionMismatch:
      return NvmlStatus::VersionMismatch;
    case nvml::kInUse:
      return NvmlStatus::InUse;
    case nvml::kArgumentVersionMismatch:
      return NvmlStatus::StructVersion;
    default:
      return NvmlStatus::Unknown;
  }
}

const char* nvml_status_text(NvmlStatus status) {
  switch (status) {
    case NvmlStatus::Ok:
      return "no error";
    case NvmlStatus::Absent:
      return "not supported by this part or driver";
    case NvmlStatus::NotFound:
      return "the driver no longer lists it";
    case NvmlStatus::Denied:
      return "no permission to ask the driver";
    case NvmlStatus::NotLoaded:
      return "the driver's kernel module is not loaded";
    case NvmlStatus::Timeout:
      return "nothing happened in time";
    case NvmlStatus::TooSmall:
      return "the answer did not fit";
    case NvmlStatus::Lost:
      return "the GPU has fallen off the bus";
    case NvmlStatus::ResetRequired:
      return "the GPU must be reset before it can be used";
    case NvmlStatus::Blocked:
      return "the operating system blocks access to it";
    case NvmlStatus::VersionMismatch:
      return "the driver's library and kernel module are of different versions";
    case NvmlStatus::InUse:
      return "it is in use";
    case NvmlStatus::StructVersion:
      return "the driver knows another version of this question";
    case NvmlStatus::Unknown:
      return "the driver reports an unknown error";
  }
  return "";
}

bool concerns_device(NvmlStatus status) {
  switch (status) {
    case NvmlStatus::Denied:
    case NvmlStatus::NotLoaded:
    case NvmlStatus::Lost:
    case NvmlStatus::ResetRequired:
    case NvmlStatus::Blocked:
    case NvmlStatus::VersionMismatch:
      return true;
    default:
      return false;
  }
}

Result<NvmlLibrary> NvmlLibrary::load(const std::string& library) {
  const std::string file = library == "auto" ? "libnvidia-ml.so.1" : library;
  NvmlLibrary loaded;
  loaded.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded.handle_ == nullptr) {
    const char* why = dlerror();
    return Error{ErrorCode::Unavailable,
                 "cannot load " + file + ": " + (why == nullptr ? "unknown error" : why)};
  }
#define BMGPU_NVML_RESOLVE(member, symbol, ...) \
  loaded.table_.member =                        \
      reinterpret_cast<nvml::Table::member##_function*>(resolve(loaded.handle_, symbol));
  BMGPU_NVML_FUNCTIONS(BMGPU_NVML_RESOLVE)
#undef BMGPU_NVML_RESOLVE
  const nvml::Table& api = loaded.table_;
  if (api.init == nullptr || api.shutdown == nullptr || api.count == nullptr ||
      api.handle_by_index == nullptr) {
    return Error{ErrorCode::Refused, file +
                                         " is not an NVML library: it lacks nvmlInit_v2, "
                                         "nvmlShutdown, nvmlDeviceGetCount_v2 or "
                                         "nvmlDeviceGetHandleByIndex_v2"};
  }
  if (void* marker = dlsym(loaded.handle_, "bmgpu_nvml_is_simulated"); marker != nullptr) {
    loaded.simulated_ = reinterpret_cast<int (*)()>(marker)() != 0;
  }
  return loaded;
}

NvmlLibrary::NvmlLibrary(NvmlLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      table_(other.table_),
      simulated_(other.simulated_) {}

NvmlLibrary::~NvmlLibrary() {
  if (handle_ != nullptr) {
    dlclose(handle_);
  }
}

Result<std::string> find_simulated_library() {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) {
    return Error{ErrorCode::Unavailable, "cannot tell where this executable lies"};
  }
  std::string folder(buffer.data(), static_cast<std::size_t>(size));
  folder.resize(folder.rfind('/'));
  folder.resize(folder.rfind('/'));
  for (const char* place : {"/lib/libnvml-sim.so", "/lib/bmgpu/libnvml-sim.so"}) {
    if (access((folder + place).c_str(), R_OK) == 0) {
      return folder + place;
    }
  }
  return Error{ErrorCode::NotFound, "libnvml-sim.so is neither in " + folder + "/lib nor in " +
                                        folder + "/lib/bmgpu; name it by nvml.library"};
}

}  // namespace bmgpu::agent
