#include "controld/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "wire/hash.h"

namespace bmgpu::controld {
namespace {

Error failed(const std::string& path, std::string_view what) {
  return Error{ErrorCode::Unavailable,
               path + ": cannot be " + std::string(what) + ": " + std::strerror(errno)};
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<StateDir> StateDir::open(const std::string& path) {
  std::error_code error;
  for (const char* folder : {"", "/blobs", "/blobs/tmp", "/logs", "/tls"}) {
    std::filesystem::create_directories(path + folder, error);
    if (error) {
      return Error{ErrorCode::Unavailable, path + folder +
                                               ": cannot be created: " + error.message() +
                                               "; set state_dir to a folder that bmd may write"};
    }
  }
  chmod(path.c_str(), 0700);
  const std::string lock_file = path + "/lock";
  const int lock = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return failed(lock_file, "opened");
  }
  StateDir dir(path, lock);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::Unavailable,
                 path + " is in use by another bmd; stop it first or choose another state_dir"};
  }
  Result<std::string> key = dir.ensure_random("secret.key", wire::random_bytes(32), 0600);
  if (!key) {
    return key.error();
  }
  Result<std::string> market =
      dir.ensure_random("market", wire::hex(wire::random_bytes(8)) + "\n", 0644);
  if (!market) {
    return market.error();
  }
  if (key->size() != 32 || market->size() != 17) {
    return Error{ErrorCode::DataLoss,
                 path + ": secret.key or market is damaged: restore them from a backup"};
  }
  dir.secret_key_ = std::move(*key);
  dir.market_ = market->substr(0, 16);
  return dir;
}

StateDir::StateDir(StateDir&& other) noexcept
    : path_(std::move(other.path_)),
      secret_key_(std::move(other.secret_key_)),
      market_(std::move(other.market_)),
      lock_(std::exchange(other.lock_, -1)) {}

StateDir::~StateDir() {
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

Result<std::string> StateDir::ensure_random(std::string_view name, std::string bytes,
                                            unsigned mode) const {
  if (has(name)) {
    return read(name);
  }
  const Result<void> written = write(name, bytes, mode);
  return written ? Result<std::string>(std::move(bytes)) : Result<std::string>(written.error());
}

Result<void> StateDir::write(std::string_view name, std::string_view bytes, unsigned mode) const {
  const std::string target = file(name);
  const std::string temporary = target + ".new";
  {
    const File out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (out.fd() < 0 || fchmod(out.fd(), mode) != 0 || !write_all(out.fd(), bytes) ||
        fsync(out.fd()) != 0) {
      return failed(temporary, "written");
    }
  }
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    return failed(target, "replaced");
  }
  const std::string parent = target.substr(0, target.rfind('/'));
  const File folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0 || fsync(folder.fd()) != 0) {
    return failed(parent, "made durable");
  }
  return {};
}

Result<std::string> StateDir::read(std::string_view name) const {
  std::ifstream in(file(name), std::ios::binary);
  if (!in) {
    return failed(file(name), "read");
  }
  return std::string(std::istreambuf_iterator<char>(in), {});
}

bool StateDir::has(std::string_view name) const { return access(file(name).c_str(), F_OK) == 0; }

}  // namespace bmgpu::controld
