#include "agent/runtime/network.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <thread>

#include "agent/runtime/clock.h"
#include "agent/runtime/files.h"
#include "agent/runtime/netlink.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

constexpr std::uint32_t kBlocks = 65536 / 4;  // /30s in a /16
constexpr int kBlockTries = 64;
constexpr int kBlockBits = 30;
constexpr int kLoopbackIndex = 1;
constexpr const char* kLockDir = "/run/bm-agent";
constexpr const char* kLockFile = "/run/bm-agent/nat.lock";

// "10.215" of "10.215.0.0/16".
std::optional<std::string> prefix_of(const std::string& subnet) {
  const std::size_t first = subnet.find('.');
  const std::size_t second = first == std::string::npos ? first : subnet.find('.', first + 1);
  if (second == std::string::npos || subnet.substr(second) != ".0.0/16") {
    return std::nullopt;
  }
  const std::string prefix = subnet.substr(0, second);
  for (const std::string& part : {prefix.substr(0, first), prefix.substr(first + 1)}) {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < 0 || value > 255) {
      return std::nullopt;
    }
  }
  return prefix;
}

Error bad_subnet(const std::string& subnet) {
  return {ErrorCode::InvalidArgument,
          "nat subnet '" + subnet + "' is not like 10.215.0.0/16 (a /16 is needed)"};
}

std::string table_of(const std::string& prefix) {
  std::string name = "bmgpu_" + prefix;
  name[name.find('.')] = '_';
  return name;
}

std::uint32_t address(const std::string& prefix, std::uint32_t block, std::uint32_t host) {
  unsigned first = 0, second = 0;
  const std::size_t dot = prefix.find('.');
  std::from_chars(prefix.data(), prefix.data() + dot, first);
  std::from_chars(prefix.data() + dot + 1, prefix.data() + prefix.size(), second);
  return first << 24 | second << 16 | (block * 4 + host);
}

Result<void> apply_rules(const std::string& rules) {
  RunOptions options;
  options.input = rules;
  const Result<std::string> done = run_ok({"nft", "-f", "-"}, options);
  return done.ok() ? Result<void>() : done.error();
}

// Runs on a thread of its own, which enters the new namespace and ends with it. A netlink socket of
// the namespace.
Result<Netlink> make_namespace(const std::string& path) {
  if (::unshare(CLONE_NEWNET) != 0) {
    return errno_error("cannot make a network namespace", errno);
  }
  if (::mount("/proc/thread-self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return errno_error("cannot pin the network namespace at " + path, errno);
  }
  return Netlink::open();
}

// The rules of a subnet are shared by the agents of a host. Whoever adds a link and makes sure of
// the rules, or finds no link and removes them, holds this lock meanwhile (for a few 10 ms).
Result<Fd> lock_rules() {
  if (Result<void> made = make_dirs(kLockDir); !made.ok()) {
    return made.error();
  }
  Fd lock(::open(kLockFile, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0) {
    return errno_error(kLockFile, errno);
  }
  return lock;
}

bool rules_exist(const std::string& prefix) {
  return run_ok({"nft", "list", "table", "inet", table_of(prefix)}).ok();
}

bool links_exist() {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/sys/class/net"), ::closedir);
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      break;
    }
    if (std::string_view(entry->d_name).starts_with("bmv")) {
      return true;
    }
  }
  return false;
}

// Both ends of the link get their addresses and are set up.
Result<void> configure(Netlink& host, Netlink& inside, const std::string& name,
                       const std::string& prefix, std::uint32_t block) {
  const Result<int> index = host.index_of(name);
  const Result<int> peer = inside.index_of("eth0");
  if (!index.ok() || !peer.ok()) {
    return index.ok() ? peer.error() : index.error();
  }
  const std::uint32_t outer = address(prefix, block, 1);
  for (const Result<void>& step : {host.add_address(*index, outer, kBlockBits), host.set_up(*index),
                                   inside.set_up(kLoopbackIndex),
                                   inside.add_address(*peer, address(prefix, block, 2), kBlockBits),
                                   inside.set_up(*peer), inside.add_default_route(*peer, outer)}) {
    if (!step.ok()) {
      return step;
    }
  }
  return {};
}

}  // namespace

Result<void> ensure_nat(const std::string& subnet) {
  const std::optional<std::string> prefix = prefix_of(subnet);
  if (!prefix) {
    return bad_subnet(subnet);
  }
  const std::string forwarding = "/proc/sys/net/ipv4/ip_forward";
  const Result<std::string> now = read_file(forwarding);
  if (!now.ok() || !now->starts_with("1")) {
    if (Result<void> on = write_kernel_file(forwarding, "1"); !on.ok()) {
      return on;
    }
  }
  const std::string table = "table inet " + table_of(*prefix);
  const std::string rules = table + " {}\ndelete " + table + "\n" + table + R"( {
  chain post {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr )" + subnet + R"( oifname != "bmv*" masquerade
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname "bmv*" oifname "bmv*" drop
    iifname "bmv*" ip daddr 169.254.0.0/16 drop
    oifname "bmv*" ct state established,related accept
    oifname "bmv*" ip daddr )" +
                            subnet + R"( drop
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname "bmv*" ct state established,related accept
    iifname "bmv*" meta l4proto { tcp, udp } th dport 53 accept
    iifname "bmv*" drop
  }
}
)";
  return apply_rules(rules);
}

Result<void> remove_nat(const std::string& subnet) {
  const std::optional<std::string> prefix = prefix_of(subnet);
  if (!prefix) {
    return bad_subnet(subnet);
  }
  const Result<Fd> lock = lock_rules();
  if (!lock.ok()) {
    return lock.error();
  }
  if (links_exist()) {
    return {};  // of another agent of this host
  }
  const std::string table = "table inet " + table_of(*prefix);
  return apply_rules(table + " {}\ndelete " + table + "\n");
}

Result<void> make_network(const std::string& path, const std::string& subnet) {
  const std::optional<std::string> prefix = prefix_of(subnet);
  if (!prefix) {
    return bad_subnet(subnet);
  }
  if (!Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid()) {
    return errno_error(path, errno);
  }
  Result<Netlink> inside = Error{ErrorCode::Internal, "no namespace was made"};
  std::thread([&] { inside = make_namespace(path); }).join();
  if (!inside.ok()) {
    return inside.error();
  }
  Result<Netlink> host = Netlink::open();
  const Fd pinned(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!host.ok() || !pinned.valid()) {
    return host.ok() ? errno_error(path, errno) : host.error();
  }
  const Result<Fd> lock = lock_rules();
  if (!lock.ok()) {
    return lock.error();
  }
  // Anywhere to begin is right; different places keep jobs that start together apart.
  std::uint32_t block = static_cast<std::uint32_t>(boot_now_ns() / 1000) % kBlocks;
  for (int attempt = 0; attempt < kBlockTries; ++attempt, block = (block + 1) % kBlocks) {
    const std::string name = "bmv" + std::to_string(block);
    const Result<void> linked = host->add_veth(name, "eth0", pinned.get());
    if (linked.ok()) {
      // Another agent's end or a flushed firewall may have taken them: never a link without rules.
      const Result<void> ruled = rules_exist(*prefix) ? Result<void>() : ensure_nat(subnet);
      return ruled.ok() ? configure(*host, *inside, name, *prefix, block) : ruled;
    }
    if (linked.error().code != ErrorCode::AlreadyExists) {
      return linked;
    }
  }
  return Error{ErrorCode::ResourceExhausted, "no free network of " + subnet + " after 64 tries"};
}

Result<void> remove_network(const std::string& path) {
  while (::umount2(path.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0) {
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return errno_error("cannot remove " + path, errno);
  }
  return {};
}

}  // namespace bmgpu::agent
