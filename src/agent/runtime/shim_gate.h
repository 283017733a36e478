// The shim's end of the gate to bm-init (src/agent/init/init.c has the protocol): a socket that is
// accepted once and then unlinked, and the file with the lease's end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/runtime/files.h"
#include "agent_core/shim_state.h"
#include "base/result.h"

namespace bmgpu::agent {

struct GateDevices {
  std::vector<agent_core::SeenDevice> seen;
};
struct GateStarted {};
struct GateFailed {  // the job's command could not be run
  int error = 0;
};
struct GateEnded {
  int exit_code = 0;   // 128 + signal
  std::string detail;  // "signal 9" or empty
};
using GateMessage = std::variant<GateDevices, GateStarted, GateFailed, GateEnded>;

// Writes <gate>/deadline, which bm-init reads at the end that it knows.
Result<void> write_gate_deadline(const std::string& gate_dir, std::int64_t boottime_ns,
                                 std::int64_t unix_ms);

class Gate {
 public:
  // Makes the folder and listens in it.
  static Result<Gate> listen(const std::string& gate_dir);

  // Poll this for input; −1 once bm-init has gone.
  int fd() const { return connection_.valid() ? connection_.get() : listener_.get(); }
  // Takes what is there. Whoever connects second finds no socket.
  std::vector<GateMessage> read();

  // bm-init, as this machine numbers it, once it has connected; 0 before.
  int peer_pid() const { return peer_pid_; }

  bool go();
  void bye();

 private:
  Gate(std::string dir, Fd listener) : dir_(std::move(dir)), listener_(std::move(listener)) {}
  std::optional<GateMessage> parse(const std::string& line);
  bool send(const char* text);

  std::string dir_;
  Fd listener_;
  Fd connection_;
  int peer_pid_ = 0;
  std::string buffer_;
  GateDevices devices_;
};

}  // namespace bmgpu::agent
