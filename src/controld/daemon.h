// bmd as a whole: opens the state directory, starts the threads in order, and ends them in the
// other.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "controld/config.h"
#include "controld/market.h"
#include "wire/log.h"

namespace bmgpu::controld {

class Daemon {
 public:
  // Loads everything and listens. After it, endpoint.json says where.
  static Result<std::unique_ptr<Daemon>> start(Config config, std::string version, wire::Log& log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  const Endpoints& endpoints() const;

  // Stops accepting, finishes what was accepted, writes a last snapshot.
  Result<void> stop();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// What `bmd --verify` prints: replays the journal of `state_dir`, checks the invariants (a broken
// one stops the process) and gives
// {"sequence":…,"digest":"…","leases":…,"waiting_orders":…}. Needs that no bmd runs on it.
Result<std::string> verify(const std::string& state_dir);

}  // namespace bmgpu::controld
