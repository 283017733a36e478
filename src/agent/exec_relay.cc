#include "agent/exec_relay.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "agent/event_loop.h"
#include "agent/runtime/exec.h"
#include "agent/runtime/service.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/errors.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGrantPeriod{20};
constexpr milliseconds kSendRetry{10};
constexpr std::size_t kGrantBytesMin = 64 * 1024;

TerminalSize size_of(const v1::TerminalSize& size) {
  const auto limited = [](std::uint32_t value, std::uint16_t otherwise) {
    return value == 0 || value > 10'000 ? otherwise : static_cast<std::uint16_t>(value);
  };
  return {limited(size.rows(), 24), limited(size.columns(), 80)};
}

}  // namespace

// Shared with the session's own thread, whose callbacks may outlive the relay's interest.
struct ExecRelay::Stream {
  std::uint64_t id = 0;
  std::function<bool(const v1::AgentFrame&)> send;

  std::mutex mutex;  // guards credit and gone
  std::condition_variable changed;
  std::size_t credit = kWindowBytes;  // of output
  bool gone = false;

  // Of the loop's thread.
  std::unique_ptr<ExecSession> session;
  std::size_t ahead = kWindowBytes;  // input that bmd may still send
  bool granting = false;

  enum class Kind { Stdout, Stderr };
  // Blocks while there is no credit; false once nobody reads any more.
  bool output(Kind kind, std::string_view bytes) {
    while (!bytes.empty()) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return gone || credit > 0; });
      if (gone) {
        return false;
      }
      const std::size_t size = std::min({bytes.size(), credit, kChunkBytes});
      credit -= size;
      lock.unlock();
      v1::AgentFrame frame;
      frame.mutable_stream()->set_stream(id);
      v1::ExecServerFrame& to_client = *frame.mutable_stream()->mutable_to_client();
      std::string& text =
          kind == Kind::Stdout ? *to_client.mutable_stdout() : *to_client.mutable_stderr();
      text = bytes.substr(0, size);
      if (!send_or_gone(frame)) {
        return false;
      }
      bytes.remove_prefix(size);
    }
    return true;
  }

  bool send_or_gone(const v1::AgentFrame& frame) {
    while (!send(frame)) {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, kSendRetry, [this] { return gone; })) {
        return false;
      }
    }
    return true;
  }

  void leave() {
    {
      const std::lock_guard lock(mutex);
      gone = true;
    }
    changed.notify_all();
  }
};

ExecRelay::ExecRelay(EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {}

ExecRelay::~ExecRelay() {
  for (const auto& [id, stream] : streams_) {
    stream->leave();
    stream->session.reset();
  }
}

void ExecRelay::session_closed() {
  while (!streams_.empty()) {
    end(streams_.begin()->first);
  }
}

void ExecRelay::take(const v1::StreamFrame& frame) {
  const auto at = streams_.find(frame.stream());
  if (at == streams_.end()) {
    if (frame.to_node().has_start()) {
      open(frame);
    }
    return;  // of a stream that has just ended
  }
  const std::shared_ptr<Stream> stream = at->second;
  if (frame.window() > 0) {
    {
      const std::lock_guard lock(stream->mutex);
      stream->credit += frame.window();
    }
    stream->changed.notify_all();
  }
  if (frame.closed()) {
    end(frame.stream());
  } else if (frame.has_to_node()) {
    input(stream, frame.to_node());
  }
}

void ExecRelay::open(const v1::StreamFrame& frame) {
  if (streams_.size() >= kStreamsMax) {
    refuse(frame.stream(), "this node runs 64 exec and cp sessions already; end one");
    return;
  }
  const Result<std::string> container = options_.container(frame.lease());
  if (!container) {
    refuse(frame.stream(), container.error().message);
    return;
  }
  const auto stream = std::make_shared<Stream>();
  stream->id = frame.stream();
  stream->send = options_.send;
  stream->credit += frame.window();
  streams_.emplace(stream->id, stream);
  run(stream, frame.to_node().start(), *container);
}

void ExecRelay::run(const std::shared_ptr<Stream>& stream, const v1::ExecStart& start,
                    const std::string& container) {
  ExecCallbacks callbacks;
  callbacks.on_stdout = [stream](std::string_view bytes) {
    stream->output(Stream::Kind::Stdout, bytes);
  };
  callbacks.on_stderr = [stream](std::string_view bytes) {
    stream->output(Stream::Kind::Stderr, bytes);
  };
  callbacks.on_end = [this, stream](const ExecEnd& ended) {
    v1::AgentFrame frame;
    frame.mutable_stream()->set_stream(stream->id);
    v1::ExecServerFrame& to_client = *frame.mutable_stream()->mutable_to_client();
    if (ended.outcome) {
      to_client.set_exit_code(*ended.outcome);
      to_client.set_not_started(ended.not_started);
    } else {
      to_client.set_error(ended.outcome.error().message);
      to_client.set_error_code(std::string(wire::connect_code(ended.outcome.error().code)));
    }
    to_client.set_engine_text(ended.engine_text);
    stream->send_or_gone(frame);
    loop_.post([this, id = stream->id] { end(id); });
  };
  if (start.archive() == v1::ARCHIVE_DIRECTION_UNSPECIFIED) {
    ExecOptions options;
    options.socket = service_socket(options_.runtime());
    options.container = container;
    options.command.assign(start.command().begin(), start.command().end());
    options.terminal = start.terminal();
    options.size = size_of(start.size());
    stream->session = start_exec(std::move(options), std::move(callbacks));
  } else {
    ArchiveOptions options;
    options.runtime = options_.runtime();
    options.container = container;
    options.way =
        start.archive() == v1::ARCHIVE_DIRECTION_UPLOAD ? ArchiveWay::Upload : ArchiveWay::Download;
    options.path = start.archive_path();
    stream->session = start_archive(std::move(options), std::move(callbacks));
  }
}

void ExecRelay::input(const std::shared_ptr<Stream>& stream, const v1::ExecClientFrame& frame) {
  ExecSession& session = *stream->session;
  if (frame.has_resize()) {
    session.resize(size_of(frame.resize()));
  } else if (frame.stdin_closed()) {
    session.close_input();
  } else if (!frame.stdin().empty()) {
    const bool allowed = frame.stdin().size() <= stream->ahead;
    stream->ahead -= std::min(stream->ahead, frame.stdin().size());
    if (!session.write(frame.stdin()) && !allowed) {
      refuse(stream->id, "more input was sent than the node had room for");
      end(stream->id);
      return;
    }
    grant(*stream);
    grant_later(stream);
  }
}

void ExecRelay::grant(Stream& stream) {
  const std::size_t room = std::min(stream.session->room(), kWindowBytes);
  if (room < stream.ahead + kGrantBytesMin) {
    return;
  }
  v1::AgentFrame frame;
  frame.mutable_stream()->set_stream(stream.id);
  frame.mutable_stream()->set_window(static_cast<std::uint32_t>(room - stream.ahead));
  if (options_.send(frame)) {
    stream.ahead = room;
  }
}

// The job reads its input without telling: room is looked for until bmd has enough of it again.
void ExecRelay::grant_later(const std::shared_ptr<Stream>& stream) {
  if (stream->granting || stream->ahead + kGrantBytesMin > kWindowBytes) {
    return;
  }
  stream->granting = true;
  loop_.after(kGrantPeriod, [this, stream] {
    stream->granting = false;
    if (streams_.contains(stream->id)) {
      grant(*stream);
      grant_later(stream);
    }
  });
}

void ExecRelay::refuse(std::uint64_t stream, const std::string& why) {
  v1::AgentFrame frame;
  frame.mutable_stream()->set_stream(stream);
  frame.mutable_stream()->mutable_to_client()->set_error(why);
  options_.send(frame);
}

void ExecRelay::end(std::uint64_t id) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) {
    return;
  }
  const std::shared_ptr<Stream> stream = at->second;
  streams_.erase(at);
  stream->leave();
  reaper_.submit([stream] { stream->session.reset(); });
}

}  // namespace bmgpu::agent
