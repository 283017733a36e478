#include "agent/guard_heart.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include <algorithm>

#include "agent/host/facts.h"
#include "agent/node_file.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeatPeriod{500};
constexpr milliseconds kNodeFilePeriod{1000};
constexpr milliseconds kConnectLimit{1500};
constexpr milliseconds kRetryMin{50};
constexpr milliseconds kRetryMax{1000};
// A connection that has not answered for this long is a dead one: the fence is over.
constexpr std::int64_t kSilenceMaxNs = 2'000'000'000;
constexpr off_t kGuardLogBytesMax = 1024 * 1024;
constexpr const char* kMethod = "bmgpu.v1.Agent/Heartbeat";

// The guard lives for months: its log, which is written by appending, starts anew when it has
// grown.
void bound_log(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0 && facts.st_size > kGuardLogBytesMax) {
    [[maybe_unused]] const int failed = truncate(path.c_str(), 0);  // the next look tries again
  }
}

std::int64_t boottime_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Result<std::unique_ptr<GuardHeart>> GuardHeart::create(const std::string& state_dir,
                                                       wire::Log& log) {
  const std::string boot_id = read_boot_id();
  Result<PermissionWriter> page = PermissionWriter::open(permission_path(state_dir), boot_id);
  if (!page) {
    return page.error();
  }
  const Result<PermissionReader> reader = PermissionReader::open(permission_path(state_dir));
  if (!reader) {
    return reader.error();
  }
  const std::optional<PublishedPermission> before = reader->read(boot_id);
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::create();
  if (!loop) {
    return loop.error();
  }
  std::unique_ptr<GuardHeart> heart(
      new GuardHeart(state_dir, log, std::move(*loop), std::move(*page),
                     before ? before->permission : agent_core::Permission{}, boot_id));
  EventLoop& own_loop = *heart->loop_;
  Result<Fd> signals = watch_signals(own_loop, {SIGTERM, SIGINT}, [&own_loop] { own_loop.stop(); });
  if (!signals) {
    return signals.error();
  }
  heart->signals_ = std::move(*signals);
  return heart;
}

GuardHeart::GuardHeart(std::string state_dir, wire::Log& log, std::unique_ptr<EventLoop> loop,
                       PermissionWriter page, const agent_core::Permission& before,
                       std::string boot_id)
    : state_dir_(std::move(state_dir)),
      log_(log),
      loop_(std::move(loop)),
      page_(std::move(page)),
      state_(before),
      boot_id_(std::move(boot_id)),
      retry_(kRetryMin) {}

GuardHeart::~GuardHeart() = default;

void GuardHeart::run() {
  loop_->every(kBeatPeriod, [this] { beat(); });
  loop_->every(kNodeFilePeriod, [this] { look_at_node_file(); });
  loop_->post([this] { look_at_node_file(); });
  loop_->run();
  socket_.reset();
  PublishedPermission none;
  none.permission.grant = state_.permission().grant;
  none.permission.incarnation = state_.permission().incarnation;
  none.updated_boottime_ns = boottime_ns();
  page_.publish(none);
}

void GuardHeart::look_at_node_file() {
  bound_log(guard_dir(state_dir_) + "/log");
  const Result<std::string> bytes = read_file(node_file_path(state_dir_));
  if (!bytes) {
    if (bytes.error().code == ErrorCode::NotFound) {
      log_.info("the node has left its market");
      loop_->stop();
    }
    return;
  }
  if (*bytes == node_file_) {
    return;
  }
  const Result<v1::NodeFile> node = read_node_file(state_dir_);
  if (!node) {
    log_.warning("node.json cannot be used", {{"why", node.error().message}});
    return;
  }
  node_file_ = *bytes;
  node_ = node->node();
  endpoint_ = heartbeat_endpoint(*node);
  disconnect("node.json has changed");
  connect();
}

void GuardHeart::connect() {
  loop_->cancel(retry_timer_);
  const std::uint64_t connection = ++connection_;
  const auto on_loop = [this, connection](auto task) {
    loop_->post([this, connection, task = std::move(task)] {
      if (connection == connection_) {
        task();
      }
    });
  };
  wire::WebSocketClient::Callbacks callbacks;
  callbacks.on_message = [this, on_loop](std::string message) {
    on_loop([this, message = std::move(message)] { take(message); });
  };
  callbacks.on_closed = [this, on_loop](const Error& why) {
    on_loop([this, text = why.message] {
      disconnect(text);
      connect_later();
    });
  };
  Result<std::unique_ptr<wire::WebSocketClient>> socket =
      wire::WebSocketClient::connect(endpoint_, kMethod, std::move(callbacks), kConnectLimit);
  if (!socket) {
    if (socket.error().message != last_failure_) {
      last_failure_ = socket.error().message;
      log_.warning("no connection for heartbeats", {{"why", last_failure_}});
    }
    connect_later();
    return;
  }
  socket_ = std::move(*socket);
  last_heard_ns_ = boottime_ns();
  last_failure_.clear();
  log_.info("heartbeats are connected", {{"url", endpoint_.url}});
  beat();
}

void GuardHeart::connect_later() {
  loop_->cancel(retry_timer_);
  retry_timer_ = loop_->after(retry_, [this] { connect(); });
  retry_ = std::min(retry_ * 2, kRetryMax);
}

void GuardHeart::disconnect(const std::string& why) {
  if (socket_ == nullptr) {
    return;
  }
  ++connection_;
  socket_.reset();
  log_.warning("heartbeats are cut off", {{"why", why}});
  publish();
}

void GuardHeart::beat() {
  if (socket_ == nullptr) {
    return;
  }
  const std::int64_t now = boottime_ns();
  if (now - last_heard_ns_ > kSilenceMaxNs) {
    disconnect("no answer for 2 s");
    connect_later();
    return;
  }
  const agent_core::HeartbeatToSend next = state_.next(now);
  v1::Heartbeat heartbeat;
  heartbeat.set_node(node_);
  heartbeat.set_sequence(next.sequence);
  heartbeat.set_sent_boottime_ns(now);
  heartbeat.set_last_answer_sequence(next.last_answer_sequence);
  heartbeat.set_boot_id(boot_id_);
  heartbeat.set_clock_unix_ms(unix_ms());
  socket_->send(heartbeat.SerializeAsString());
  publish();
}

void GuardHeart::take(const std::string& message) {
  v1::HeartbeatAnswer answer;
  if (!answer.ParseFromString(message)) {
    disconnect("the market sends what is no answer");
    connect_later();
    return;
  }
  const std::int64_t now = boottime_ns();
  const agent_core::AnswerVerdict verdict =
      state_.take({answer.sequence(), answer.sent_boottime_ns(), Incarnation(answer.incarnation()),
                   answer.fence_ms()},
                  now);
  last_heard_ns_ = now;
  retry_ = kRetryMin;
  if (verdict == agent_core::AnswerVerdict::Granted) {
    log_.info("permission granted",
              {{"grant", state_.permission().grant}, {"incarnation", answer.incarnation()}});
  }
  publish();
}

void GuardHeart::publish() {
  PublishedPermission published;
  published.permission = state_.permission();
  published.guard_pid = getpid();
  published.last_sent_sequence = state_.last_sent_sequence();
  published.last_answer_sequence = state_.last_answer_sequence();
  published.connected = socket_ != nullptr;
  published.updated_boottime_ns = boottime_ns();
  page_.publish(published);
}

}  // namespace bmgpu::agent
