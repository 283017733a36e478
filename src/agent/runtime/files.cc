#include "agent/runtime/files.h"

#include <fcntl.h>
#include <fts.h>
#include <mntent.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace bmgpu::agent {
namespace {

constexpr std::string_view kTemporaryMark = ".tmp.";  // then the writer's pid, ".", a number

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() { return std::exchange(fd_, -1); }

void Fd::reset() {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

Error errno_error(const std::string& what, int error) {
  ErrorCode code = ErrorCode::Internal;
  switch (error) {
    case ENOENT:
      code = ErrorCode::NotFound;
      break;
    case EEXIST:
      code = ErrorCode::AlreadyExists;
      break;
    case EACCES:
    case EPERM:
      code = ErrorCode::PermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = ErrorCode::ResourceExhausted;
      break;
    case ECONNREFUSED:
    case EAGAIN:
    case EPIPE:
    case ECONNRESET:
      code = ErrorCode::Unavailable;
      break;
    case ETIMEDOUT:
      code = ErrorCode::DeadlineExceeded;
      break;
    default:
      break;
  }
  std::array<char, 128> buffer{};
  return Error{code, what + ": " + ::strerror_r(error, buffer.data(), buffer.size())};
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return errno_error(path, errno);
  }
  std::string bytes;
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return errno_error(path, errno);
    }
    if (n == 0) {
      return bytes;
    }
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
    if (bytes.size() > bytes_max) {
      return Error{ErrorCode::ResourceExhausted,
                   path + ": longer than " + std::to_string(bytes_max) + " bytes"};
    }
  }
}

namespace {

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return errno_error(path, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view bytes, int mode,
                        Durability durability) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = path + std::string(kTemporaryMark) + std::to_string(::getpid()) +
                                "." + std::to_string(++counter);
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) {
    return errno_error(temporary, errno);
  }
  Result<void> outcome = write_all(fd.get(), bytes, temporary);
  if (outcome.ok() && durability == Durability::Fsync && ::fsync(fd.get()) != 0) {
    outcome = errno_error("fsync of " + temporary, errno);
  }
  if (outcome.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    outcome = errno_error("rename to " + path, errno);
  }
  if (!outcome.ok()) {
    ::unlink(temporary.c_str());
    return outcome;
  }
  if (durability == Durability::Fsync) {
    const Fd dir(
        ::open(path.substr(0, path.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir.valid() || ::fsync(dir.get()) != 0) {
      return errno_error("fsync of the folder of " + path, errno);
    }
  }
  return {};
}

void remove_temporary_files(const std::string& folder) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
    const std::string name = entry.path().filename().string();
    const std::size_t mark = name.rfind(kTemporaryMark);
    if (mark == std::string::npos) {
      continue;
    }
    const char* const last = name.data() + name.size();
    pid_t pid = 0;
    unsigned number = 0;
    const auto [dot, bad_pid] =
        std::from_chars(name.data() + mark + kTemporaryMark.size(), last, pid);
    if (bad_pid == std::errc() && pid > 0 && dot != last && *dot == '.' &&
        std::from_chars(dot + 1, last, number).ptr == last && ::kill(pid, 0) != 0 &&
        errno == ESRCH) {
      ::unlink(entry.path().c_str());
    }
  }
}

Result<void> write_kernel_file(const std::string& path, std::string_view bytes) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), bytes.data(), bytes.size()) < 0) {
    return errno_error(path, errno);
  }
  return {};
}

Result<void> make_dirs(const std::string& path, int mode) {
  for (std::size_t slash = path.find('/', 1); true; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), static_cast<mode_t>(mode)) != 0 && errno != EEXIST) {
      return errno_error("cannot make the folder " + part, errno);
    }
    if (slash == std::string::npos) {
      return {};
    }
  }
}

Result<void> remove_tree(const std::string& path) {
  std::string copy = path;
  std::array<char*, 2> roots = {copy.data(), nullptr};
  FTS* tree = ::fts_open(roots.data(), FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr);
  if (tree == nullptr) {
    return errno_error(path, errno);
  }
  Result<void> outcome;
  while (FTSENT* entry = ::fts_read(tree)) {
    if (entry->fts_info == FTS_D) {
      continue;
    }
    const bool missing = entry->fts_info == FTS_NS && entry->fts_errno == ENOENT;
    if (!missing && ::remove(entry->fts_accpath) != 0 && errno != ENOENT && outcome.ok()) {
      outcome = errno_error(std::string("cannot remove ") + entry->fts_path, errno);
    }
  }
  ::fts_close(tree);
  return outcome;
}

void detach_mounts_below(const std::string& folder) {
  FILE* mounts = ::setmntent("/proc/self/mounts", "re");
  if (mounts == nullptr) {
    return;
  }
  std::vector<std::string> below;  // in the order of mounting
  while (const mntent* entry = ::getmntent(mounts)) {
    const std::string where = entry->mnt_dir;
    if (where.starts_with(folder + "/")) {
      below.push_back(where);
    }
  }
  ::endmntent(mounts);
  for (auto where = below.rbegin(); where != below.rend(); ++where) {
    ::umount2(where->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  }
}

std::string read_boot_id() {
  Result<std::string> text = read_file("/proc/sys/kernel/random/boot_id", 256);
  if (!text.ok()) {
    return {};
  }
  std::string id = std::move(*text);
  while (!id.empty() && id.back() == '\n') {
    id.pop_back();
  }
  return id;
}

}  // namespace bmgpu::agent
