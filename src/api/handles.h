// What handlers hold of a request, stream or socket. They know the connection by number only, so
// that they may outlive it and be dropped on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "api/outbox.h"
#include "api/server.h"

namespace bmgpu::api {

// Shared by a stream or socket handle and its connection: counts what waits to be sent.
struct SendState {
  std::atomic<bool> closed = false;
  std::atomic<std::size_t> queued_bytes = 0;
};

// Where a handle's deliveries go. Shared pointers: handles live as long as their holders like.
struct HandleTarget {
  std::shared_ptr<Outbox> outbox;
  std::uint64_t connection = 0;
  std::uint64_t exchange = 0;
};

std::shared_ptr<Replier> make_replier(HandleTarget target);
std::shared_ptr<Stream> make_stream(HandleTarget target, std::shared_ptr<SendState> state,
                                    std::size_t queue_bytes_max);
std::shared_ptr<Socket> make_socket(HandleTarget target, std::shared_ptr<SendState> state,
                                    std::size_t queue_bytes_max);

}  // namespace bmgpu::api
