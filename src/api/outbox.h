// What other threads want the edge thread to do, collected so that many answers wake it once.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::api {

struct Delivery {
  enum class Kind {
    Answer,         // bytes or error: of a unary request
    StreamMessage,  // bytes
    StreamEnd,      // error, or success
    SocketMessage,  // bytes
    SocketClose,    // bytes: the reason
    SocketPause,
    SocketResume,
    Overflow,  // a send queue is over its limit
    File,      // bytes or error: of a file operation
  };
  Kind kind = Kind::Answer;
  std::uint64_t connection = 0;
  std::uint64_t exchange = 0;  // which request of the connection
  std::string bytes;
  std::optional<Error> error;
  std::uint64_t number = 0;  // File: the file's size
};

// Thread-safe. Handles keep it alive beyond the server.
class Outbox {
 public:
  // `wake` makes the edge thread call take() soon. Called with the outbox locked.
  explicit Outbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Wakes the edge thread unless a wake-up is on its way already. Nothing after close().
  void push(Delivery delivery);
  // Swaps all deliveries, in order, into `into`, which must be empty.
  void take(std::vector<Delivery>& into);
  // No wake-up happens after this returns.
  void close();

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<Delivery> waiting_;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace bmgpu::api
