// Files in and out of a job: libpod's archive calls, which work inside the job's mount namespace.
#include <poll.h>

#include <optional>
#include <thread>
#include <utility>

#include "agent/runtime/exec.h"
#include "agent/runtime/exec_input.h"
#include "agent/runtime/http.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/service.h"

namespace bmgpu::agent {
namespace {

using Clock = HttpConnection::Clock;

constexpr std::chrono::hours kArchiveDeadline{6};
constexpr std::chrono::seconds kEngineDeadline{15};
constexpr std::size_t kChunkBytes = 64 * 1024;

class ArchiveSession final : public ExecSession {
 public:
  ArchiveSession(ArchiveOptions options, ExecCallbacks callbacks)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        thread_([this] { callbacks_.on_end(run()); }) {}
  ~ArchiveSession() override {
    input_.cancel();
    thread_.join();
  }

  bool write(std::string_view bytes) override { return input_.write(bytes); }
  void close_input() override { input_.close(); }
  void resize(TerminalSize) override {}
  std::size_t room() const override { return input_.room(); }

 private:
  ExecEnd run();
  ExecEnd refused(const HttpResponse& response) const;
  Result<void> send_input(HttpConnection& connection, Clock::time_point deadline);

  const ArchiveOptions options_;
  const ExecCallbacks callbacks_;
  ExecInput input_;
  std::thread thread_;  // last: it uses the others
};

Result<void> ArchiveSession::send_input(HttpConnection& connection, Clock::time_point deadline) {
  while (!input_.at_end()) {
    const std::string bytes = input_.take(kChunkBytes);
    if (!bytes.empty()) {
      if (Result<void> sent = connection.send_chunk(bytes, deadline); !sent.ok()) {
        return sent;
      }
      continue;
    }
    pollfd wake = {input_.wake_fd(), POLLIN, 0};
    ::poll(&wake, 1, -1);
    input_.clear_wake();
    if (input_.cancelled()) {
      return Error{ErrorCode::Unavailable, "the session was ended"};
    }
  }
  return connection.send_chunk("", deadline);
}

// The engine's words say what failed inside it; ours say what to do.
ExecEnd ArchiveSession::refused(const HttpResponse& response) const {
  const Error engine = Podman::failure(response);
  const auto says = [&](std::string_view words) {
    return engine.message.find(words) != std::string::npos;
  };
  const auto ended = [&](ErrorCode code, std::string message) {
    return ExecEnd{Error{code, std::move(message)}, "", engine.message};
  };
  if (engine.code == ErrorCode::NotFound && !says("container")) {
    return ended(ErrorCode::NotFound, "there is no " + options_.path +
                                          " in the job; look what is there: bmcli exec ID -- ls");
  }
  if (says("read-only file system")) {
    return ended(ErrorCode::Refused,
                 options_.path + " in the job does not exist or is read-only; a job may write " +
                     "below /workspace, /scratch and /tmp");
  }
  if (says("file exists")) {
    return ended(ErrorCode::Refused,
                 "a folder in the job would be replaced by a file, or a file by a folder; to copy "
                 "into a folder, end TO with /");
  }
  if (says("not a directory")) {
    return ended(ErrorCode::Refused, options_.path + " in the job is no folder; name one");
  }
  if (says("no space left on device")) {
    return ended(ErrorCode::ResourceExhausted,
                 "the job's scratch space is full; remove something from it first");
  }
  return {engine};
}

ExecEnd ArchiveSession::run() {
  if (options_.path.empty() || options_.path.front() != '/') {
    return {Error{ErrorCode::InvalidArgument,
                  "'" + options_.path + "' is not an absolute path inside the job"}};
  }
  const Clock::time_point deadline = Clock::now() + kArchiveDeadline;
  const Result<std::unique_ptr<OwnEngine>> engine =
      OwnEngine::start(options_.runtime, kEngineDeadline);
  if (!engine.ok()) {
    return {engine.error()};
  }
  Result<HttpConnection> connection =
      HttpConnection::connect((*engine)->socket(), Clock::now() + kEngineDeadline);
  if (!connection.ok()) {
    return {connection.error()};
  }
  connection->cancel_by(input_.cancelled());
  const bool upload = options_.way == ArchiveWay::Upload;
  HttpRequest request;
  request.method = upload ? "PUT" : "GET";
  request.target = Podman::archive_target(options_.container, options_.path);
  request.target += upload ? "&noOverwriteDirNonDir=true" : "";
  request.content_type = "application/x-tar";
  Result<void> sent = connection->send_head(request, deadline, upload);
  if (sent.ok() && upload) {
    sent = send_input(*connection, deadline);
  }
  if (input_.cancelled()) {
    return {Error{ErrorCode::Unavailable, "the session was ended"}};
  }
  // An upload that is refused half way still gets its answer.
  Result<HttpResponse> response = connection->receive(
      deadline, [this](std::string_view bytes) { callbacks_.on_stdout(bytes); });
  if (!response.ok()) {
    return {sent.ok() ? response.error() : sent.error()};
  }
  return response->status >= 400 ? refused(*response) : ExecEnd{0};
}

}  // namespace

std::unique_ptr<ExecSession> start_archive(ArchiveOptions options, ExecCallbacks callbacks) {
  return std::make_unique<ArchiveSession>(std::move(options), std::move(callbacks));
}

}  // namespace bmgpu::agent
