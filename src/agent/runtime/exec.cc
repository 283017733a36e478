#include "agent/runtime/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "agent/runtime/exec_input.h"
#include "agent/runtime/http.h"
#include "agent/runtime/podman.h"

namespace bmgpu::agent {
namespace {

using Clock = HttpConnection::Clock;

constexpr std::chrono::seconds kCallDeadline{10};
constexpr std::size_t kFrameHead = 8;  // stream, three zeros, length big-endian
constexpr std::size_t kReadBytes = 64 * 1024;

// As shells and the engine have it.
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr std::size_t kEngineWordsMax = 4096;
constexpr std::array<std::string_view, 2> kEngineWords = {"Error: runc: exec failed: ",
                                                          "Error: crun: "};

class CommandSession final : public ExecSession {
 public:
  CommandSession(ExecOptions options, ExecCallbacks callbacks)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        thread_([this] { callbacks_.on_end(run()); }) {}
  ~CommandSession() override {
    input_.cancel();
    thread_.join();
  }

  bool write(std::string_view bytes) override { return input_.write(bytes); }
  void close_input() override { input_.close(); }
  void resize(TerminalSize size) override { input_.resize(size); }
  std::size_t room() const override { return input_.room(); }

 private:
  ExecEnd run();
  ExecEnd end_of(int code);
  void output(bool is_stderr, std::string_view text);
  void flush_held();
  Result<void> stream(int fd, std::string bytes);
  bool take_output(std::string& bytes);
  void apply_size(const Podman& podman, const std::string& id);

  const ExecOptions options_;
  const ExecCallbacks callbacks_;
  ExecInput input_;
  std::string id_;
  bool has_written_ = false;  // the command itself, for certain
  std::string held_;          // what may be the engine's words in place of the command's
  std::thread thread_;        // last: it uses the others
};

ExecEnd CommandSession::run() {
  const Podman podman(options_.socket, kCallDeadline);
  Result<std::string> id = podman.create_exec(options_.container, options_.command,
                                              options_.terminal, options_.working_dir);
  if (!id.ok()) {
    return {id.error()};
  }
  id_ = *id;
  Result<HttpConnection> connection =
      podman.start_exec(id_, options_.terminal, options_.size.rows, options_.size.columns);
  if (!connection.ok()) {
    return {connection.error()};
  }
  connection->cancel_by(input_.cancelled());
  std::string rest = connection->take_rest();
  if (Result<void> ended = stream(connection->fd(), std::move(rest)); !ended.ok()) {
    return {ended.error()};
  }
  const Result<int> code = podman.exec_exit_code(id_);
  return code.ok() ? end_of(*code) : ExecEnd{code};
}

// The engine says why a program could not be started where the program's output would be.
ExecEnd CommandSession::end_of(int code) {
  const bool not_started = !held_.empty() && (code == kNotFound || code == kNotExecutable);
  if (!not_started) {
    flush_held();
    return {code};
  }
  const std::string& program = options_.command.front();
  return {code,
          code == kNotFound
              ? "no such program in the container: " + program
              : program + " in the container is no program: it is a folder or may not be executed",
          held_};
}

// Holds back what begins like the engine's words, until the exit code says whose they are.
void CommandSession::output(bool is_stderr, std::string_view text) {
  if (!has_written_ && is_stderr != options_.terminal && held_.size() < kEngineWordsMax) {
    const std::string all = held_ + std::string(text);
    const bool engine = std::ranges::any_of(
        kEngineWords, [&](std::string_view start) { return all.starts_with(start); });
    if (engine) {
      held_ = all;
      return;
    }
  }
  has_written_ = true;
  flush_held();
  (is_stderr ? callbacks_.on_stderr : callbacks_.on_stdout)(text);
}

void CommandSession::flush_held() {
  if (!held_.empty()) {
    (options_.terminal ? callbacks_.on_stdout : callbacks_.on_stderr)(std::exchange(held_, {}));
  }
}

// Gives complete frames to the callbacks and leaves the rest. False: what comes is no frame.
bool CommandSession::take_output(std::string& bytes) {
  if (options_.terminal) {
    if (!bytes.empty()) {
      output(false, bytes);
      bytes.clear();
    }
    return true;
  }
  std::string_view rest = bytes;
  while (rest.size() >= kFrameHead) {
    const auto byte = [&](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>(rest[i]));
    };
    const std::size_t length = byte(4) << 24 | byte(5) << 16 | byte(6) << 8 | byte(7);
    if (byte(0) > 3 || length > kExecInputBytesMax) {
      return false;
    }
    if (rest.size() < kFrameHead + length) {
      break;
    }
    const std::string_view text = rest.substr(kFrameHead, length);
    output(byte(0) != 1, text);
    rest.remove_prefix(kFrameHead + length);
  }
  bytes.erase(0, bytes.size() - rest.size());
  return true;
}

Result<void> CommandSession::stream(int fd, std::string bytes) {
  const Podman podman(options_.socket, kCallDeadline);
  const Error malformed{ErrorCode::Internal, "the container engine sent no valid output"};
  std::string outgoing;
  bool input_open = true;
  std::array<char, kReadBytes> buffer;
  while (take_output(bytes)) {
    if (const std::optional<TerminalSize> size = input_.take_size()) {
      (void)podman.resize_exec(id_, size->rows, size->columns).ok();
    }
    if (outgoing.empty() && input_open) {
      outgoing = input_.take(kReadBytes);
      if (outgoing.empty() && input_.at_end()) {
        ::shutdown(fd, SHUT_WR);
        input_open = false;
      }
    }
    const short writing = outgoing.empty() ? 0 : POLLOUT;
    std::array<pollfd, 2> fds = {
        {{fd, static_cast<short>(POLLIN | writing), 0}, {input_.wake_fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    input_.clear_wake();
    if (input_.cancelled()) {
      return Error{ErrorCode::Unavailable, "the session was ended"};
    }
    if ((fds[0].revents & POLLOUT) != 0) {
      const ssize_t n = ::send(fd, outgoing.data(), outgoing.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) {
        outgoing.clear();  // it reads no more; its output may still come
        input_open = false;
      } else if (n > 0) {
        outgoing.erase(0, static_cast<std::size_t>(n));
      }
    }
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        return {};
      }
      bytes.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
  }
  return malformed;
}

}  // namespace

std::unique_ptr<ExecSession> start_exec(ExecOptions options, ExecCallbacks callbacks) {
  return std::make_unique<CommandSession>(std::move(options), std::move(callbacks));
}

}  // namespace bmgpu::agent
