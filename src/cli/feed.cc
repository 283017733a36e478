#include "cli/feed.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "bmgpu/v1/market.pb.h"
#include "cli/context.h"

namespace bmgpu::cli {
namespace {

using Clock = std::chrono::steady_clock;

bool is_outage(const Error& error) {
  return error.code == ErrorCode::Unavailable || error.code == ErrorCode::DeadlineExceeded;
}

}  // namespace

struct Feed::Shared {
  wire::Endpoint endpoint;
  decltype(Environment::connect) connect;
  std::chrono::milliseconds retry_wait{200};

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<FeedItem> items;
  bool closed = false;

  void push(FeedItem item) {
    const std::lock_guard lock(mutex);
    if (!closed) {
      items.push_back(std::move(item));
      changed.notify_all();
    }
  }
  bool is_closed() {
    const std::lock_guard lock(mutex);
    return closed;
  }
  // False once the feed is closed.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, time, [this] { return closed; });
  }

  // One server stream, opened again after each outage. `make_request` is called for every try,
  // `on_message` says whether the stream has done what it was for.
  template <typename Request, typename OnMessage>
  void run(FeedFailed::Source source, const char* method, const Request& make_request,
           const OnMessage& on_message) {
    std::optional<Clock::time_point> lost_at;
    std::chrono::milliseconds wait = retry_wait;
    bool done = false;
    const auto receive = [&](std::string_view bytes) {
      if (lost_at) {
        lost_at.reset();
        wait = retry_wait;
        push(ConnectionBack());
      }
      done = on_message(bytes);
      return !done && !is_closed();
    };
    while (true) {
      Result<std::unique_ptr<wire::Client>> client = connect(endpoint);
      const auto request = make_request();
      Result<void> outcome =
          client ? (*client)->stream(method_path(method), request, receive) : client.error();
      if (done || is_closed()) {
        return;
      }
      // A stream that ends well before it is done was cut by a server that shuts down.
      const Error why =
          outcome ? Error{ErrorCode::Unavailable, "the market closed the stream"} : outcome.error();
      const Clock::time_point now = Clock::now();
      if (!is_outage(why) || (lost_at && now - *lost_at > kOutageMax)) {
        push(FeedFailed{source, why});
        return;
      }
      if (!lost_at) {
        lost_at = now;
        push(ConnectionLost{why.message});
      }
      if (!pause(wait)) {
        return;
      }
      wait = std::min(wait * 2, std::chrono::milliseconds(2000));
    }
  }

  void watch(const std::string& id) {
    v1::GetOrderRequest request;
    request.set_id(id);
    run(
        FeedFailed::Source::Order, "WatchOrder", [&] { return request; },
        [&](std::string_view bytes) {
          v1::Order order;
          if (!order.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
            return false;
          }
          push(OrderChanged{std::string(bytes)});
          return order.state() == v1::ORDER_STATE_ENDED;
        });
  }

  void follow(const std::string& id, std::uint32_t tail) {
    LogCursor cursor(id, LogCursor::Follow::Yes, tail);
    const auto make_request = [&] {
      v1::StreamLogsRequest request;
      cursor.fill(request);
      return request;
    };
    run(FeedFailed::Source::Log, "StreamLogs", make_request, [&](std::string_view bytes) {
      Result<LogEntries> taken = cursor.take(bytes);
      if (!taken) {
        return false;  // the stream goes on; a broken one ends by itself
      }
      const bool complete = taken->complete;
      if (complete || !taken->entries.empty()) {
        push(std::move(*taken));
      }
      return complete;
    });
  }
};

Feed::Feed(Context& context) : shared_(std::make_shared<Shared>()), context_(context) {
  Result<wire::Endpoint> endpoint = context.endpoint();
  check(endpoint.ok(), "feed: the configuration must be readable");
  shared_->endpoint = std::move(*endpoint);
  shared_->connect = context.environment().connect;
  shared_->retry_wait = context.environment().retry_wait;
  context.environment().interrupts.on_interrupt(
      [shared = shared_] { shared->push(Interrupted()); });
}

Feed::~Feed() {
  context_.environment().interrupts.on_interrupt({});
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
  shared_->changed.notify_all();
}

void Feed::watch_order(const std::string& id) {
  std::thread([shared = shared_, id] { shared->watch(id); }).detach();
}

void Feed::follow_log(const std::string& id, std::uint32_t tail) {
  std::thread([shared = shared_, id, tail] { shared->follow(id, tail); }).detach();
}

std::optional<FeedItem> Feed::next(std::optional<std::chrono::steady_clock::time_point> until) {
  std::unique_lock lock(shared_->mutex);
  const auto ready = [this] { return !shared_->items.empty(); };
  if (!until) {
    shared_->changed.wait(lock, ready);
  } else if (!shared_->changed.wait_until(lock, *until, ready)) {
    return std::nullopt;
  }
  FeedItem item = std::move(shared_->items.front());
  shared_->items.pop_front();
  return item;
}

}  // namespace bmgpu::cli
