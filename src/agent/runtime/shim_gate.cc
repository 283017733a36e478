#include "agent/runtime/shim_gate.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

namespace bmgpu::agent {
namespace {

constexpr std::size_t kBufferBytesMax = 64 * 1024;  // 256 devices need 6 KiB

}  // namespace

Result<void> write_gate_deadline(const std::string& gate_dir, std::int64_t boottime_ns,
                                 std::int64_t unix_ms) {
  return write_file(gate_dir + "/deadline",
                    std::to_string(boottime_ns) + " " + std::to_string(unix_ms) + "\n", 0644);
}

Result<Gate> Gate::listen(const std::string& gate_dir) {
  if (Result<void> made = make_dirs(gate_dir, 0755); !made.ok()) {
    return made.error();
  }
  const Fd dir(::open(gate_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Through the folder's descriptor, because a socket's path may not be long.
  const std::string path = "/proc/self/fd/" + std::to_string(dir.get()) + "/shim.sock";
  ::unlink(path.c_str());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid() ||
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), 1) != 0) {
    return errno_error("cannot listen in " + gate_dir, errno);
  }
  return Gate(gate_dir, std::move(listener));
}

std::optional<GateMessage> Gate::parse(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  if (kind == "device") {
    agent_core::SeenDevice device;
    if (words >> device.name_minor >> device.major >> device.minor >> device.open_errno) {
      devices_.seen.push_back(device);
    }
    return std::nullopt;
  }
  if (kind == "ready") {
    return std::exchange(devices_, {});
  }
  if (kind == "started") {
    return GateStarted{};
  }
  int number = 0;
  if (!(words >> number)) {
    return std::nullopt;
  }
  if (kind == "failed") {
    return GateFailed{number};
  }
  if (kind == "exit") {
    return GateEnded{number, ""};
  }
  if (kind == "signal") {
    return GateEnded{128 + number, "killed by signal " + std::to_string(number)};
  }
  return std::nullopt;
}

std::vector<GateMessage> Gate::read() {
  std::vector<GateMessage> out;
  if (!connection_.valid()) {
    connection_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection_.valid()) {
      return out;
    }
    ::unlink((dir_ + "/shim.sock").c_str());
    ucred peer = {};
    socklen_t size = sizeof peer;
    if (::getsockopt(connection_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
      peer_pid_ = peer.pid;
    }
    listener_.reset();
  }
  std::array<char, 4096> bytes;
  while (connection_.valid()) {
    const ssize_t n = ::recv(connection_.get(), bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && errno == EAGAIN) {
      break;
    }
    if (n <= 0 || buffer_.size() > kBufferBytesMax) {
      connection_.reset();
      break;
    }
    buffer_.append(bytes.data(), static_cast<std::size_t>(n));
  }
  for (std::size_t end = buffer_.find('\n'); end != std::string::npos; end = buffer_.find('\n')) {
    if (std::optional<GateMessage> message = parse(buffer_.substr(0, end))) {
      out.push_back(std::move(*message));
    }
    buffer_.erase(0, end + 1);
  }
  return out;
}

bool Gate::send(const char* text) {
  const std::size_t size = std::strlen(text);
  return connection_.valid() &&
         ::send(connection_.get(), text, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool Gate::go() { return send("go\n"); }
void Gate::bye() { send("bye\n"); }

}  // namespace bmgpu::agent
