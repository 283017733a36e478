#include "cli/exec_socket.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "bmgpu/v1/market.pb.h"
#include "cli/context.h"
#include "cli/format.h"
#include "wire/errors.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kQueueBytesMax = 1024 * 1024;
constexpr std::size_t kFrameBytesMax = 32 * 1024;
constexpr std::chrono::milliseconds kLook{5};

}  // namespace

struct ExecSocket::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<ExecItem> items;
  bool over = false;  // the last item is in the queue
  std::unique_ptr<wire::WebSocketClient> socket;

  void push(ExecItem item) {
    const std::lock_guard lock(mutex);
    if (!over) {
      over = !std::holds_alternative<ExecOutput>(item);
      items.push_back(std::move(item));
      changed.notify_all();
    }
  }
  bool is_over() {
    const std::lock_guard lock(mutex);
    return over;
  }

  void take(const std::string& message) {
    v1::ExecServerFrame frame;
    if (!frame.ParseFromString(message)) {
      push(ExecFailed{{ErrorCode::DataLoss, "the market sent a frame that cannot be read"}});
      return;
    }
    switch (frame.kind_case()) {
      case v1::ExecServerFrame::kStdout:
        push(ExecOutput{ExecOutput::Stream::Stdout, std::move(*frame.mutable_stdout())});
        break;
      case v1::ExecServerFrame::kStderr:
        push(ExecOutput{ExecOutput::Stream::Stderr, std::move(*frame.mutable_stderr())});
        break;
      case v1::ExecServerFrame::kExitCode:
        push(ExecExit{frame.exit_code(), frame.not_started(), frame.engine_text()});
        break;
      case v1::ExecServerFrame::kError:
        push(ExecFailed{
            {frame.error_code().empty() ? ErrorCode::Refused
                                        : wire::error_code_of_connect(frame.error_code()),
             frame.error()},
            frame.engine_text()});
        break;
      case v1::ExecServerFrame::KIND_NOT_SET:
        break;  // a newer market says more than we know
    }
  }
};

Failure failure_of(const ExecFailed& failed) {
  Failure failure = failure_of(failed.error);
  failure.detail = failed.engine_text;
  return failure;
}

ExecSocket::ExecSocket(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

ExecSocket::~ExecSocket() {
  // The callbacks hold the rest of the shared state, so the connection must go first.
  shared_->socket.reset();
}

Result<std::unique_ptr<ExecSocket>> ExecSocket::open(Context& context, const v1::ExecStart& start) {
  // A frame says why it failed in words only; asked this way, the market also says what kind it is.
  v1::GetOrderRequest request;
  request.set_id(start.id());
  v1::Order order;
  if (Result<void> called = context.call("GetOrder", request, order); !called) {
    return called.error();
  }
  if (order.state() != v1::ORDER_STATE_RUNNING) {
    const std::string next = order.state() < v1::ORDER_STATE_RUNNING
                                 ? "bmcli wait " + order.id() + " --for running waits for it"
                                 : "bmcli logs " + order.id() + " shows what it wrote";
    return Error{ErrorCode::Refused,
                 order.id() + " is not running (" + state_cell(order).text + "); " + next};
  }
  const Result<wire::Endpoint> endpoint = context.endpoint();
  if (!endpoint) {
    return endpoint.error();
  }
  auto shared = std::make_shared<Shared>();
  wire::WebSocketClient::Callbacks callbacks;
  callbacks.on_message = [shared](std::string message) { shared->take(message); };
  callbacks.on_closed = [shared](Error why) { shared->push(ExecFailed{std::move(why)}); };
  Result<std::unique_ptr<wire::WebSocketClient>> socket =
      context.environment().connect_socket(*endpoint, method_path("Exec"), std::move(callbacks));
  if (!socket) {
    return socket.error();
  }
  shared->socket = std::move(*socket);
  v1::ExecClientFrame frame;
  *frame.mutable_start() = start;
  shared->socket->send(frame.SerializeAsString());
  return std::unique_ptr<ExecSocket>(new ExecSocket(std::move(shared)));
}

Result<void> ExecSocket::send_stdin(std::string_view bytes) {
  while (!bytes.empty()) {
    {
      std::unique_lock lock(shared_->mutex);
      while (!shared_->over && shared_->socket->queued_bytes() > kQueueBytesMax) {
        shared_->changed.wait_for(lock, kLook);
      }
    }
    v1::ExecClientFrame frame;
    frame.set_stdin(std::string(bytes.substr(0, kFrameBytesMax)));
    if (shared_->is_over() || !shared_->socket->send(frame.SerializeAsString())) {
      return Error{ErrorCode::Refused, "the command has ended"};
    }
    bytes.remove_prefix(std::min(kFrameBytesMax, bytes.size()));
  }
  return {};
}

void ExecSocket::close_stdin() {
  v1::ExecClientFrame frame;
  frame.set_stdin_closed(true);
  shared_->socket->send(frame.SerializeAsString());
}

void ExecSocket::resize(TerminalSize size) {
  v1::ExecClientFrame frame;
  frame.mutable_resize()->set_rows(size.rows);
  frame.mutable_resize()->set_columns(size.columns);
  shared_->socket->send(frame.SerializeAsString());
}

ExecItem ExecSocket::next() {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [this] { return !shared_->items.empty(); });
  ExecItem item = std::move(shared_->items.front());
  shared_->items.pop_front();
  return item;
}

}  // namespace bmgpu::cli
