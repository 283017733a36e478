#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "wire/client.h"
#include "wire/errors.h"
#include "wire/link.h"

namespace bmgpu::wire {
namespace {

namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;

constexpr std::size_t kMessageBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kQueueBytesMax = 64 * 1024 * 1024;
constexpr std::chrono::seconds kSilenceMax{30};  // half of it without a byte: a ping
constexpr std::chrono::seconds kGoodbye{2};

class LinkedWebSocket final : public WebSocketClient {
 public:
  LinkedWebSocket(WebAddress address, const Endpoint& endpoint)
      : link_(std::move(address), endpoint.ca_sha256) {}

  ~LinkedWebSocket() override {
    close();
    if (thread_.joinable()) {
      check(thread_.get_id() != std::this_thread::get_id(),
            "websocket client: destroyed within its own callback");
      thread_.join();
    }
  }

  Result<void> open(const Endpoint& endpoint, std::string_view method, LinkTime deadline) {
    const Result<void> connected = link_.connect(deadline);
    if (!connected.ok()) {
      return connected;
    }
    socket_.emplace(std::move(link_.stream()));
    websocket::stream_base::timeout timeouts{};
    timeouts.handshake_timeout = kSilenceMax;
    timeouts.idle_timeout = kSilenceMax;
    timeouts.keep_alive_pings = true;
    socket_->set_option(timeouts);
    socket_->set_option(websocket::stream_base::decorator(
        [bearer = endpoint.bearer](websocket::request_type& request) {
          if (!bearer.empty()) {
            request.set(http::field::authorization, "Bearer " + bearer);
          }
        }));
    socket_->binary(true);
    socket_->auto_fragment(false);
    socket_->read_message_max(kMessageBytesMax);
    return upgrade("/" + std::string(method), deadline);
  }

  void start(Callbacks callbacks) {
    callbacks_ = std::move(callbacks);
    link_.io().restart();
    thread_ = std::thread([this] { run(); });
  }

  bool send(std::string message) override {
    const std::size_t size = message.size();
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || queued_bytes_ + size > kQueueBytesMax) {
        return false;
      }
      queued_bytes_ += size;
      incoming_.push_back(std::move(message));
      if (incoming_.size() > 1) {
        return true;  // the wake-up for the first one is on its way
      }
    }
    boost::asio::post(link_.io(), [this] { take(); });
    return true;
  }

  void close() override {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) {
        return;
      }
      closed_ = true;
    }
    boost::asio::post(link_.io(), [this] { say_goodbye(); });
  }

  std::size_t queued_bytes() const override {
    const std::lock_guard lock(mutex_);
    return queued_bytes_;
  }

 private:
  Result<void> upgrade(const std::string& path, LinkTime deadline) {
    error_code failed;
    bool done = false;
    websocket::response_type response;
    socket_->async_handshake(response, link_.address().authority(), path,
                             [&](const error_code& result) {
                               failed = result;
                               done = true;
                             });
    link_.io().restart();
    while (!done && link_.io().run_one_until(deadline) > 0) {
    }
    if (!done) {
      socket_->next_layer().close();
      link_.io().restart();
      while (!done && link_.io().run_one() > 0) {
      }
      return Error{ErrorCode::DeadlineExceeded,
                   link_.address().authority() + " did not open the WebSocket in time"};
    }
    if (failed == websocket::error::upgrade_declined) {
      return parse_error_json(response.body(), static_cast<int>(response.result_int()));
    }
    if (failed) {
      return Error{
          ErrorCode::Unavailable,
          "cannot open a WebSocket to " + link_.address().authority() + ": " + failed.message()};
    }
    return {};
  }

  // The thread: until the connection is closed.
  void run() {
    read();
    link_.io().run();
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    if (callbacks_.on_closed) {
      callbacks_.on_closed(why_);
    }
  }

  void read() {
    socket_->async_read(buffer_, [this](const error_code& failed, std::size_t) {
      if (failed) {
        end(failed);
        return;
      }
      std::string message = boost::beast::buffers_to_string(buffer_.data());
      buffer_.consume(buffer_.size());
      callbacks_.on_message(std::move(message));
      read();
    });
  }

  void take() {
    {
      const std::lock_guard lock(mutex_);
      for (std::string& message : incoming_) {
        waiting_.push_back(std::move(message));
      }
      incoming_.clear();
    }
    write();
  }

  void write() {
    if (writing_ || ended_) {
      return;
    }
    if (waiting_.empty()) {
      if (leaving_) {
        send_close();
      }
      return;
    }
    writing_ = true;
    socket_->async_write(boost::asio::buffer(waiting_.front()),
                         [this](const error_code& failed, std::size_t) {
                           writing_ = false;
                           if (failed) {
                             end(failed);
                             return;
                           }
                           {
                             const std::lock_guard lock(mutex_);
                             queued_bytes_ -= waiting_.front().size();
                           }
                           waiting_.pop_front();
                           write();
                         });
  }

  // What was sent before close() still goes out, for a moment.
  void say_goodbye() {
    if (ended_ || leaving_) {
      return;
    }
    leaving_ = true;
    websocket::stream_base::timeout timeouts{};
    timeouts.handshake_timeout = kGoodbye;
    timeouts.idle_timeout = kGoodbye;
    timeouts.keep_alive_pings = false;
    socket_->set_option(timeouts);
    take();
  }

  void send_close() {
    ended_ = true;
    why_ = Error{ErrorCode::Unavailable, "the WebSocket was closed on this side"};
    socket_->async_close(websocket::close_code::normal, [this](const error_code&) { leave(); });
  }

  // Ends run() now: Beast's timer for pings would keep it waiting for another 15 s.
  void leave() {
    socket_->next_layer().close();
    link_.io().stop();
  }

  void end(const error_code& failed) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    if (!ended_) {
      ended_ = true;
      const auto& reason = socket_->reason();
      why_ = Error{ErrorCode::Unavailable,
                   failed == websocket::error::closed && !reason.reason.empty()
                       ? "the server closed the WebSocket: " +
                             std::string(reason.reason.data(), reason.reason.size())
                       : "the WebSocket broke: " + failed.message()};
    }
    leave();
  }

  Link link_;
  std::optional<websocket::stream<FlexStream, false>> socket_;
  Callbacks callbacks_;
  boost::beast::flat_buffer buffer_;
  std::deque<std::string> waiting_;  // the first one is being written
  bool writing_ = false;
  bool leaving_ = false;
  bool ended_ = false;
  Error why_{ErrorCode::Unavailable, "the WebSocket broke"};

  mutable std::mutex mutex_;  // of what follows
  std::vector<std::string> incoming_;
  std::size_t queued_bytes_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<WebSocketClient>> WebSocketClient::connect(
    const Endpoint& endpoint, std::string_view method, Callbacks callbacks,
    std::chrono::milliseconds timeout) {
  Result<WebAddress> address = check_endpoint(endpoint);
  if (!address.ok()) {
    return address.error();
  }
  auto client = std::make_unique<LinkedWebSocket>(std::move(*address), endpoint);
  const Result<void> opened =
      client->open(endpoint, method, std::chrono::steady_clock::now() + timeout);
  if (!opened.ok()) {
    return opened.error();
  }
  client->start(std::move(callbacks));
  return std::unique_ptr<WebSocketClient>(std::move(client));
}

}  // namespace bmgpu::wire
