#include "cli/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace bmgpu::cli {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    Descriptor old(std::exchange(number_, other.release()));
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) {
    ::close(number_);
  }
}

int Descriptor::release() { return std::exchange(number_, -1); }

namespace {

std::string_view advice(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return "; check the path";
    case EACCES:
    case EPERM:
      return "; check its owner and mode (ls -ld), or choose another place";
    case EISDIR:
    case ENOTEMPTY:
      return "; remove it or name another target";
    case ENOSPC:
    case EDQUOT:
      return "; make room, or choose another place";
    default:
      return "";
  }
}

}  // namespace

std::string special_file(mode_t mode) {
  if (S_ISFIFO(mode)) {
    return "a pipe";
  }
  if (S_ISSOCK(mode)) {
    return "a socket";
  }
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "";
}

Error file_error(std::string_view doing, std::string_view path, int error_number) {
  const ErrorCode code = error_number == ENOSPC || error_number == EIO ? ErrorCode::Refused
                                                                       : ErrorCode::InvalidArgument;
  return {code, "cannot " + std::string(doing) + " " + std::string(path) + ": " +
                    std::generic_category().message(error_number) +
                    std::string(advice(error_number))};
}

Result<std::string> read_all(int descriptor, std::size_t bytes_max, std::string_view name) {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return file_error("read", name, errno);
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > bytes_max) {
      return Error{ErrorCode::InvalidArgument,
                   std::string(name) + " is larger than " + std::to_string(bytes_max) + " bytes"};
    }
  }
}

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    return file_error("open", path, errno);
  }
  return read_all(file.number(), bytes_max, path);
}

Result<void> write_all(int descriptor, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) {
      return file_error("write", name, errno);
    }
    bytes.remove_prefix(put < 0 ? 0 : static_cast<std::size_t>(put));
  }
  return {};
}

Result<std::vector<std::string>> read_folder(int folder, std::string_view name) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy),
                                                    ::closedir);
  if (!listing) {
    return file_error("list the folder", name, errno);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view found(entry->d_name);
    if (found != "." && found != "..") {
      names.emplace_back(found);
    }
  }
  std::ranges::sort(names);  // so that nothing depends on the file system's own order
  return names;
}

Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty() && !std::filesystem::exists(folder, failed)) {
    std::filesystem::create_directories(folder, failed);
    if (failed) {
      return file_error("make the folder", folder.string(), failed.value());
    }
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  }
  std::string fresh = path + ".XXXXXX";
  const Descriptor file(::mkostemp(fresh.data(), O_CLOEXEC));  // mode 0600
  if (!file.open()) {
    return file_error("write beside", path, errno);
  }
  Result<void> written = write_all(file.number(), text, fresh);
  if (written && (::fchmod(file.number(), mode) != 0 || ::fsync(file.number()) != 0 ||
                  ::rename(fresh.c_str(), path.c_str()) != 0)) {
    written = file_error("replace", path, errno);
  }
  if (!written) {
    ::unlink(fresh.c_str());
  }
  return written;
}

}  // namespace bmgpu::cli
