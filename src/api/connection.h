// One accepted connection as the edge sees it, whatever it speaks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "api/outbox.h"

namespace bmgpu::api {

using SteadyTime = std::chrono::steady_clock::time_point;

// All on the edge thread. shared_ptr: the edge's table and pending operations hold it together.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void deliver(Delivery delivery) = 0;
  // Closes what is over its deadline and sends keep-alives that are due.
  virtual void tick(SteadyTime now) = 0;
  // The server stops: closes when idle, else lets the answer in flight go out and closes then.
  virtual void drain() = 0;
  virtual void close() = 0;
  // Closes if it is a stream or WebSocket of this token.
  virtual void drop_token(std::uint64_t token) = 0;
};

}  // namespace bmgpu::api
