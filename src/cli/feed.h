// Follows an order and its log at the same time, across lost connections, and hands everything
// that happens to one reader in one queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "cli/log_cursor.h"

namespace bmgpu::cli {

class Context;

struct OrderChanged {
  std::string bytes;  // a serialised bmgpu.v1.Order
};
struct ConnectionLost {  // said once for each outage; it goes on by itself
  std::string why;
};
struct ConnectionBack {};
struct FeedFailed {  // it will not go on
  enum class Source { Order, Log } source;
  Error error;
};
struct Interrupted {};  // Ctrl-C

using FeedItem =
    std::variant<OrderChanged, LogEntries, ConnectionLost, ConnectionBack, FeedFailed, Interrupted>;

// One reader. The threads that it starts end when it does; it never waits for them.
class Feed {
 public:
  // Each wait for the market to come back ends after this; docs/reference/limits.md.
  static constexpr std::chrono::minutes kOutageMax{10};

  // Takes Ctrl-C for itself until it ends. REQUIRES: the configuration of `context` is readable.
  explicit Feed(Context& context);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  void watch_order(const std::string& id);
  // From the first line, or with `tail` > 0 the last lines, to the end of the log.
  void follow_log(const std::string& id, std::uint32_t tail);

  // The next item; nothing once `until` has passed.
  std::optional<FeedItem> next(std::optional<std::chrono::steady_clock::time_point> until = {});

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the threads, which may outlive this object
  Context& context_;
};

}  // namespace bmgpu::cli
