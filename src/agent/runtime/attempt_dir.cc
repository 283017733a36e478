#include "agent/runtime/attempt_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "agent/runtime/files.h"
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

Result<void> write_message(const std::string& path, const google::protobuf::MessageLite& message,
                           Durability durability = Durability::None) {
  return write_file(path, message.SerializeAsString(), 0600, durability);
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

Result<void> AttemptDir::create() const { return make_dirs(path_); }

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
