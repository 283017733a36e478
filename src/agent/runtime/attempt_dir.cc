#include "agent/runtime/attempt_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <utility>

#include "agent/runtime/files.h"
#include "agent/runtime/scratch.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

template <typename Message>
Result<Message> read_message(const std::string& path) {
  Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) {
    return bytes.error();
  }
  Message message;
  if (!message.ParseFromString(*bytes)) {
    return Error{ErrorCode::DataLoss, path + " does not hold what it should"};
  }
  return message;
}

constexpr off_t kSpareBytes = 4096;

std::string spare_of(const std::string& path) { return path + ".spare"; }
// For the first time, when there is nothing to exchange the spare with.
std::string second_of(const std::string& path) { return path + ".second"; }

Result<void> make_spare(const std::string& spare) {
  const Fd fd(::open(spare.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return errno_error(spare, errno);
  }
  if (const int error = ::posix_fallocate(fd.get(), 0, kSpareBytes); error != 0) {
    return errno_error(spare, error);
  }
  return {};
}

// Takes no new block: what is written has been there, and the two files change their names.
Result<void> write_spare(const std::string& path, const std::string& bytes, Durability durability) {
  const std::string spare = spare_of(path);
  const Fd fd(::open(spare.c_str(), O_WRONLY | O_CLOEXEC));
  const auto size = static_cast<ssize_t>(bytes.size());
  if (!fd.valid() || ::pwrite(fd.get(), bytes.data(), bytes.size(), 0) != size ||
      ::ftruncate(fd.get(), size) != 0 ||
      (durability == Durability::Fsync && ::fsync(fd.get()) != 0)) {
    return errno_error(spare, errno);
  }
  const bool first = ::access(path.c_str(), F_OK) != 0;
  if (::renameat2(AT_FDCWD, spare.c_str(), AT_FDCWD, path.c_str(),
                  first ? 0u : static_cast<unsigned>(RENAME_EXCHANGE)) != 0 ||
      (first && ::rename(second_of(path).c_str(), spare.c_str()) != 0)) {
    return errno_error("exchange of " + path, errno);
  }
  return {};
}

Result<void> write_message(const std::string& path, const google::protobuf::MessageLite& message,
                           Durability durability = Durability::None) {
  const std::string bytes = message.SerializeAsString();
  Result<void> written = write_file(path, bytes, 0600, durability);
  if (written.ok() || written.error().code != ErrorCode::ResourceExhausted) {
    return written;
  }
  return write_spare(path, bytes, durability).ok() ? Result<void>() : written;
}

// Decimal digits without sign or leading zeros.
template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string AttemptName::text() const {
  return lease + "." + std::to_string(rank) + "." + std::to_string(attempt);
}

std::optional<AttemptName> AttemptName::parse(const std::string& text) {
  const std::size_t second = text.rfind('.');
  if (second == std::string::npos || second == 0) {
    return std::nullopt;
  }
  const std::size_t first = text.rfind('.', second - 1);
  if (first == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view view = text;
  AttemptName name;
  name.lease = text.substr(0, first);
  std::uint64_t number = 0;
  if (!name.lease.starts_with("lease-") || !parse_number(view.substr(6, first - 6), number) ||
      !parse_number(view.substr(first + 1, second - first - 1), name.rank) ||
      !parse_number(view.substr(second + 1), name.attempt)) {
    return std::nullopt;
  }
  return name;
}

std::string container_name(const std::string& market, const AttemptName& name) {
  return "bm-" + market + "-" + name.text();
}

AttemptDir::AttemptDir(std::string path) : path_(std::move(path)) {}

AttemptDir::AttemptDir(const std::string& state_dir, const AttemptName& name)
    : path_(state_dir + "/attempts/" + name.text()) {}

Result<void> AttemptDir::create() const {
  Result<void> made = make_dirs(path_);
  for (const std::string& spared : {want_path(), status_path(), file("shim.pb")}) {
    for (const std::string& spare : {spare_of(spared), second_of(spared)}) {
      if (made.ok()) {
        made = make_spare(spare);
      }
    }
  }
  return made;
}

Result<v1::ShimOrder> AttemptDir::read_order() const {
  return read_message<v1::ShimOrder>(order_path());
}
Result<v1::ShimWant> AttemptDir::read_want() const {
  return read_message<v1::ShimWant>(want_path());
}
Result<v1::AttemptStatus> AttemptDir::read_status() const {
  return read_message<v1::AttemptStatus>(status_path());
}
Result<v1::ShimMemory> AttemptDir::read_memory() const {
  return read_message<v1::ShimMemory>(file("shim.pb"));
}

Result<void> AttemptDir::write_order(const v1::ShimOrder& order) const {
  return write_message(order_path(), order);
}
Result<void> AttemptDir::write_want(const v1::ShimWant& want) const {
  return write_message(want_path(), want);
}
Result<void> AttemptDir::write_status(const v1::AttemptStatus& status) const {
  const bool ended = status.phase() == v1::ATTEMPT_PHASE_ENDED;
  return write_message(status_path(), status, ended ? Durability::Fsync : Durability::None);
}
Result<void> AttemptDir::write_memory(const v1::ShimMemory& memory) const {
  return write_message(file("shim.pb"), memory);
}

bool AttemptDir::shim_alive() const {
  const Fd fd(::open(lock_path().c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return false;
  }
  // A lock taken here for a moment could turn a starting shim away, so it is only asked about.
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Result<void> AttemptDir::remove() const {
  for (const char* mount : {"scratch", "netns"}) {
    if (::umount2(file(mount).c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
        errno != ENOENT) {
      return errno_error("cannot unmount " + file(mount), errno);
    }
  }
  // Without the folder nobody would know of it any more.
  if (Result<void> released = scratch_released(file("scratch.img")); !released.ok()) {
    return released;
  }
  return remove_tree(path_);
}

std::vector<AttemptName> list_attempts(const std::string& state_dir) {
  std::vector<AttemptName> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir((state_dir + "/attempts").c_str()),
                                                ::closedir);
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      break;
    }
    if (std::optional<AttemptName> name = AttemptName::parse(entry->d_name)) {
      names.push_back(std::move(*name));
    }
  }
  std::sort(names.begin(), names.end(),
            [](const AttemptName& a, const AttemptName& b) { return a.text() < b.text(); });
  return names;
}

}  // namespace bmgpu::agent
