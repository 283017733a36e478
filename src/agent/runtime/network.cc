#include "agent/runtime/network.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <thread>

#include "agent/runtime/clock.h"
#include "agent/runtime/files.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

constexpr std::uint32_t kBlocks = 65536 / 4;  // /30s in a /16
constexpr int kBlockTries = 64;

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

std::string address(const std::string& prefix, std::uint32_t block, std::uint32_t host) {
  const std::uint32_t low = block * 4 + host;
  return prefix + "." + std::to_string(low >> 8) + "." + std::to_string(low & 255);
}

Result<std::string> feed(const std::vector<std::string>& command, const std::string& input) {
  RunOptions options;
  options.input = input;
  return run_ok(command, options);
}

// Runs on a thread of its own, which enters the new namespace and ends with it.
Result<void> make_namespace(const std::string& path) {
  if (::unshare(CLONE_NEWNET) != 0) {
    return errno_error("cannot make a network namespace", errno);
  }
  if (::mount("/proc/thread-self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return errno_error("cannot pin the network namespace at " + path, errno);
  }
  return {};
}

// The host's side. False: that block is taken.
Result<bool> make_link(const std::string& path, const std::string& prefix, std::uint32_t block) {
  const std::string name = "bmv" + std::to_string(block);
  Result<RunOutcome> made = run(
      {"ip", "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", path});
  if (!made.ok()) {
    return made.error();
  }
  if (made->exit_code != 0) {
    if (made->err.find("File exists") != std::string::npos) {
      return false;
    }
    return Error{ErrorCode::Internal, "cannot make the job's network link: " + made->err};
  }
  Result<std::string> up =
      feed({"ip", "-batch", "-"}, "address add " + address(prefix, block, 1) + "/30 dev " + name +
                                      "\nlink set " + name + " up\n");
  if (!up.ok()) {
    return up.error();
  }
  return true;
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

Result<void> configure_inside(const std::string& path, const std::string& prefix,
                              std::uint32_t block) {
  const Fd inside(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!inside.valid()) {
    return errno_error(path, errno);
  }
  RunOptions options;
  options.network_namespace = inside.get();
  options.input = "link set lo up\naddress add " + address(prefix, block, 2) +
                  "/30 dev eth0\nlink set eth0 up\nroute add default via " +
                  address(prefix, block, 1) + "\n";
  Result<std::string> done = run_ok({"ip", "-batch", "-"}, options);
  if (!done.ok()) {
    return done.error();
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
  Result<std::string> done = feed({"nft", "-f", "-"}, rules);
  if (!done.ok()) {
    return done.error();
  }
  return {};
}

Result<void> remove_nat(const std::string& subnet) {
  const std::optional<std::string> prefix = prefix_of(subnet);
  if (!prefix) {
    return bad_subnet(subnet);
  }
  if (links_exist()) {
    return {};  // of another agent of this host
  }
  const std::string table = "table inet " + table_of(*prefix);
  Result<std::string> done = feed({"nft", "-f", "-"}, table + " {}\ndelete " + table + "\n");
  if (!done.ok()) {
    return done.error();
  }
  return {};
}

Result<void> make_network(const std::string& path, const std::string& subnet) {
  const std::optional<std::string> prefix = prefix_of(subnet);
  if (!prefix) {
    return bad_subnet(subnet);
  }
  if (Result<void> made = write_file(path, ""); !made.ok()) {
    return made;
  }
  Result<void> made;
  std::thread([&] { made = make_namespace(path); }).join();
  if (!made.ok()) {
    return made;
  }
  // Anywhere to begin is right; different places keep jobs that start together apart.
  std::uint32_t block = static_cast<std::uint32_t>(boot_now_ns() / 1000) % kBlocks;
  for (int attempt = 0; attempt < kBlockTries; ++attempt, block = (block + 1) % kBlocks) {
    Result<bool> linked = make_link(path, *prefix, block);
    if (!linked.ok()) {
      return linked.error();
    }
    if (*linked) {
      return configure_inside(path, *prefix, block);
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
