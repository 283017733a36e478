#include "agent/host/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace bmgpu::agent {
namespace {

Error errno_error(const std::string& what, const std::string& path) {
  const int code = errno;
  return Error{code == ENOENT ? ErrorCode::NotFound : ErrorCode::Unavailable,
               what + " " + path + ": " + std::strerror(code)};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<void> fsync_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return errno_error("cannot open", folder);
  }
  const bool synced = fsync(fd) == 0;
  const Error error = synced ? Error{} : errno_error("cannot fsync", folder);
  close(fd);
  return synced ? Result<void>() : Result<void>(error);
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view bytes, unsigned mode) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) {
    return errno_error("cannot create a file beside", path);
  }
  const bool written = fchmod(fd, mode) == 0 && write_all(fd, bytes) && fsync(fd) == 0;
  const Error write_error = written ? Error{} : errno_error("cannot write", temporary);
  close(fd);
  if (!written) {
    unlink(temporary.c_str());
    return write_error;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = errno_error("cannot replace", path);
    unlink(temporary.c_str());
    return error;
  }
  return fsync_folder(folder_of(path));
}

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return errno_error("cannot open", path);
  }
  std::string bytes;
  std::vector<char> block(16 * 1024);
  while (true) {
    const ssize_t n = read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      const Error error = n < 0 ? errno_error("cannot read", path) : Error{};
      close(fd);
      return n < 0 ? Result<std::string>(error) : Result<std::string>(std::move(bytes));
    }
    bytes.append(block.data(), static_cast<std::size_t>(n));
    if (bytes.size() > bytes_max) {
      close(fd);
      return Error{ErrorCode::ResourceExhausted,
                   path + " is larger than " + std::to_string(bytes_max) + " bytes"};
    }
  }
}

Result<void> ensure_folder(const std::string& path, unsigned mode) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return errno_error("cannot create the folder", part);
    }
    if (at == std::string::npos) {
      break;
    }
  }
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return errno_error("cannot look at", path);
  }
  if (!S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::AlreadyExists, path + " exists and is not a folder"};
  }
  return {};
}

}  // namespace bmgpu::agent
