#include "agent/runtime/service.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "agent/runtime/detach.h"
#include "agent/runtime/files.h"
#include "agent/runtime/http.h"
#include "base/digest.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr off_t kLogBytesMax = 16 * 1024 * 1024;
constexpr const char* kOwnIdleS = "5";
constexpr std::chrono::seconds kOwnEndLimit{5};

bool listens(const std::string& socket) {
  const Result<HttpConnection> connection = HttpConnection::connect(socket, Clock::now());
  return connection.ok() || connection.error().code == ErrorCode::DeadlineExceeded;
}

// Until the deadline, looking every few milliseconds.
template <typename Condition>
bool wait_until(Clock::time_point end, const Condition& condition) {
  while (!condition()) {
    if (Clock::now() >= end) {
      return false;
    }
    ::poll(nullptr, 0, 5);
  }
  return true;
}

// Whoever starts or stops the service holds this lock.
Result<Fd> take_lock(const v1::RuntimeFacts& facts, Clock::time_point end) {
  if (Result<void> made = make_dirs(facts.run_dir()); !made.ok()) {
    return made.error();
  }
  Fd lock(::open((facts.run_dir() + "/service.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) {
    return errno_error(facts.run_dir() + "/service.lock", errno);
  }
  if (!wait_until(end, [&] { return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0; })) {
    return Error{ErrorCode::DeadlineExceeded,
                 "somebody else is starting or stopping the podman service"};
  }
  return lock;
}

void bound_log(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && info.st_size > kLogBytesMax) {
    ::unlink(path.c_str());
  }
}

// Listens at `socket` until nobody has been connected for `idle_s` ("0" = for ever).
Result<void> start_engine(const v1::RuntimeFacts& facts, const std::string& socket,
                          const std::string& idle_s, Clock::time_point end) {
  const std::string log = facts.run_dir() + "/podman.log";
  bound_log(log);
  // The engine's monitor of an exec session waits this long after the command has ended (by default
  // five minutes each); what it waits for, our reading of the exit code, takes milliseconds.
  const std::string settings = facts.run_dir() + "/containers.conf";
  if (Result<void> written = write_file(settings, "[engine]\nexit_command_delay = 10\n", 0644);
      !written.ok()) {
    return written;
  }
  std::vector<std::string> command = podman_command(facts);
  command.insert(command.begin(), {"env", "CONTAINERS_CONF=" + settings});
  command.insert(command.end(), {"system", "service", "--time=" + idle_s, "unix://" + socket});
  if (Result<void> started = start_detached(command, facts.run_dir(), log, cgroup_parent(facts));
      !started.ok()) {
    return started;
  }
  if (!wait_until(end, [&] { return listens(socket); })) {
    return Error{ErrorCode::Unavailable, "the podman service did not begin to listen; see " + log};
  }
  return {};
}

Result<int> listener_of(const std::string& socket) {
  Result<HttpConnection> connection = HttpConnection::connect(socket, Clock::now());
  if (!connection.ok()) {
    return connection.error();
  }
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection->fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 1) {
    return errno_error("cannot tell who listens on " + socket, errno);
  }
  return static_cast<int>(peer.pid);
}

// Its end is its exit, not the moment in which its parent takes notice.
void end_process(int pid, Clock::time_point end) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto gone = [&] {
    pollfd one = {process.get(), POLLIN, 0};
    return !process.valid() || ::poll(&one, 1, 0) > 0;
  };
  ::kill(pid, SIGTERM);
  if (!wait_until(end, gone)) {
    ::kill(pid, SIGKILL);
  }
}

}  // namespace

std::string service_socket(const v1::RuntimeFacts& facts) {
  return facts.run_dir() + "/podman.sock";
}

std::string cgroup_parent(const v1::RuntimeFacts& facts) {
  Digest digest;
  digest.add(facts.root());
  std::string hex;
  for (int shift = 60; shift >= 16; shift -= 4) {
    hex += "0123456789abcdef"[(digest.value() >> shift) & 15];
  }
  return "/bmgpu-" + hex;
}

std::vector<std::string> podman_command(const v1::RuntimeFacts& facts) {
  std::vector<std::string> command = {facts.podman(),
                                      "--root",
                                      facts.root(),
                                      "--runroot",
                                      facts.run_dir() + "/run",
                                      "--tmpdir",
                                      facts.run_dir() + "/tmp",
                                      "--runtime",
                                      facts.oci_runtime(),
                                      "--cgroup-manager=cgroupfs",
                                      "--events-backend=none",
                                      "--storage-driver=overlay"};
  for (const std::string& store : facts.image_stores()) {
    command.push_back("--storage-opt=additionalimagestore=" + store);
  }
  return command;
}

Result<void> ensure_service(const v1::RuntimeFacts& facts, std::chrono::milliseconds deadline) {
  const std::string socket = service_socket(facts);
  if (listens(socket)) {
    return {};
  }
  const Clock::time_point end = Clock::now() + deadline;
  const Result<Fd> lock = take_lock(facts, end);
  if (!lock.ok()) {
    return lock.error();
  }
  if (listens(socket)) {
    return {};
  }
  ::unlink(socket.c_str());
  return start_engine(facts, socket, "0", end);
}

Result<int> service_pid(const v1::RuntimeFacts& facts) {
  return listener_of(service_socket(facts));
}

Result<void> stop_service(const v1::RuntimeFacts& facts, std::chrono::milliseconds deadline) {
  const Clock::time_point end = Clock::now() + deadline;
  const Result<Fd> lock = take_lock(facts, end);
  if (!lock.ok()) {
    return lock.error();
  }
  const Result<int> pid = service_pid(facts);
  if (!pid.ok()) {
    return pid.error().code == ErrorCode::Unavailable ? Result<void>() : pid.error();
  }
  end_process(*pid, end);
  ::unlink(service_socket(facts).c_str());
  return {};
}

Result<std::unique_ptr<OwnEngine>> OwnEngine::start(const v1::RuntimeFacts& facts,
                                                    std::chrono::milliseconds deadline) {
  static std::atomic<unsigned> serial{0};
  const std::string socket = facts.run_dir() + "/own-" + std::to_string(::getpid()) + "-" +
                             std::to_string(++serial) + ".sock";
  if (Result<void> started = start_engine(facts, socket, kOwnIdleS, Clock::now() + deadline);
      !started.ok()) {
    return started.error();
  }
  const Result<int> pid = listener_of(socket);
  if (!pid.ok()) {
    return pid.error();
  }
  return std::unique_ptr<OwnEngine>(new OwnEngine(socket, *pid));
}

OwnEngine::OwnEngine(std::string socket, int pid) : socket_(std::move(socket)), pid_(pid) {}

OwnEngine::~OwnEngine() {
  end_process(pid_, Clock::now() + kOwnEndLimit);
  ::unlink(socket_.c_str());
}

}  // namespace bmgpu::agent
