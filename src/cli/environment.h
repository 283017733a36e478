// Everything that a command may touch of the world outside: streams, terminal, variables, clock,
// network. main() makes the real one; tests make their own.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "wire/client.h"

namespace bmgpu::cli {

// Ctrl-C. At most one callback at a time; it is called on a thread of its own. Thread-safe.
class Interrupts {
 public:
  virtual ~Interrupts() = default;
  // Without a callback Ctrl-C ends the process at once, as it does everywhere.
  virtual void on_interrupt(std::function<void()> callback) = 0;
};

struct Environment {
  std::ostream& out;  // data, and nothing else
  std::ostream& err;  // everything for people's eyes only
  std::istream& in;
  int in_descriptor = 0;  // the same three, for exec and cp
  int out_descriptor = 1;
  int err_descriptor = 2;
  bool in_terminal = false;
  bool out_terminal = false;
  bool err_terminal = false;
  std::function<std::optional<std::string>(const std::string& name)> variable = {};
  std::function<Instant()> now = {};
  std::function<Result<std::unique_ptr<wire::Client>>(wire::Endpoint)> connect = {};
  std::function<Result<std::unique_ptr<wire::WebSocketClient>>(
      const wire::Endpoint&, std::string_view method, wire::WebSocketClient::Callbacks)>
      connect_socket = {};
  // Lower-case hex SHA-256 of the certificate authority that the server at `url` presents.
  std::function<Result<std::string>(const std::string& url)> fetch_ca_sha256 = {};
  Interrupts& interrupts;
  // First wait before a repeated call; doubles up to 2 s.
  std::chrono::milliseconds retry_wait{200};
};

}  // namespace bmgpu::cli
