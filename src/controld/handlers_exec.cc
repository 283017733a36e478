#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "controld/validate.h"
#include "wire/encoding.h"

namespace bmgpu::controld {
namespace {

// One tenant's WebSocket: its first frame says what to run where, the rest goes to the node.
// What comes before the node is found is kept, in order. Edge thread, except found().
class ExecClient : public std::enable_shared_from_this<ExecClient> {
 public:
  ExecClient(Market& market, api::Identity caller, std::shared_ptr<api::Socket> socket)
      : market_(market), caller_(caller), socket_(std::move(socket)) {}

  void receive(const std::string& bytes) {
    v1::ExecClientFrame frame;
    const Result<void> decoded = wire::decode_answer(bytes, frame);
    if (!decoded) {
      ExecRelay::refuse(*socket_, "a frame that is not an ExecClientFrame");
      return;
    }
    const std::lock_guard lock(mutex_);
    if (stream_ != 0) {
      market_.parts.relay.from_client(stream_, frame);
    } else if (started_) {
      early_.push_back(std::move(frame));
      if (early_.size() == kEarlyMax) {
        socket_->pause();
      }
    } else if (!frame.has_start()) {
      ExecRelay::refuse(*socket_, "the first frame must be a start");
    } else {
      started_ = true;
      start(frame.start());
    }
  }

  void closed() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (stream_ != 0) {
      market_.parts.relay.client_gone(stream_);
    }
  }

 private:
  static constexpr std::size_t kEarlyMax = 64;

  void start(const v1::ExecStart& start) {
    const Result<void> fine = check_exec(start);
    if (!fine) {
      ExecRelay::refuse(*socket_, fine.error().message);
      return;
    }
    const bool posted = market_.parts.inbox.post([self = shared_from_this(), start](Turn& turn) {
      turn.after_commit(
          [self, start, &state = turn.state()](const Result<void>&) { self->find(state, start); });
    });
    if (!posted) {
      ExecRelay::refuse(*socket_, "the market is busy; try again soon");
    }
  }

  // Loop thread.
  void find(const core::State& state, const v1::ExecStart& start) {
    const Result<OrderId> order = market_.orders.resolve(state, caller_, start.id());
    if (!order) {
      ExecRelay::refuse(*socket_, order.error().message);
      return;
    }
    const auto lease = state.leases.find(LeaseId(order->value()));
    if (lease == state.leases.end() || lease->second.state != core::LeaseState::Running) {
      ExecRelay::refuse(*socket_, start.id() + " has no running job; bmcli ps shows its state");
      return;
    }
    const NodeId node = lease->second.allocations.back().ranks.front().node;
    const std::lock_guard lock(mutex_);
    if (closed_) {
      return;
    }
    stream_ = market_.parts.relay.start(node, lease->first, socket_, start);
    for (const v1::ExecClientFrame& frame : early_) {
      market_.parts.relay.from_client(stream_, frame);
    }
    if (early_.size() >= kEarlyMax) {
      socket_->resume();
    }
    early_.clear();
  }

  Market& market_;
  const api::Identity caller_;
  const std::shared_ptr<api::Socket> socket_;
  std::mutex mutex_;
  bool started_ = false;
  bool closed_ = false;
  std::uint64_t stream_ = 0;
  std::vector<v1::ExecClientFrame> early_;
};

}  // namespace

void add_exec_methods(api::Server& server, Market& market) {
  server.socket("bmgpu.v1.Market/Exec",
                [&market](const api::Identity& caller,
                          std::shared_ptr<api::Socket> socket) -> Result<api::SocketHandler> {
                  const Result<void> allowed = check_access(caller, Access::People);
                  if (!allowed) {
                    return allowed.error();
                  }
                  auto client = std::make_shared<ExecClient>(market, caller, std::move(socket));
                  api::SocketHandler handler;
                  handler.on_message = [client](const std::string& bytes) {
                    client->receive(bytes);
                  };
                  handler.on_closed = [client] { client->closed(); };
                  return handler;
                });
}

void add_session_methods(api::Server& server, Market& market) {
  server.socket("bmgpu.v1.Agent/Session",
                [&market](const api::Identity& caller,
                          std::shared_ptr<api::Socket> socket) -> Result<api::SocketHandler> {
                  if (caller.role != api::Role::Node) {
                    return Error{ErrorCode::PermissionDenied, "only nodes open sessions"};
                  }
                  return market.sessions.connected(caller.node, std::move(socket));
                });
}

}  // namespace bmgpu::controld
