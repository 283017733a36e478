// One simulated market with everything around it: what its parts share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent_core/liveness_state.h"
#include "base/prng.h"
#include "sim/chaos/faults.h"
#include "sim/chaos/frames.h"
#include "sim/checkers/containers.h"
#include "sim/checkers/promises.h"
#include "sim/engine/sim_disk.h"
#include "sim/engine/stream.h"
#include "sim/engine/timeline.h"
#include "sim/engine/verdict.h"

namespace bmgpu::sim {

class MarketProcess;
class SimNode;

// Where in a turn the market dies.
enum class TurnDeath { BeforeStore, BeforeSend, WhileSending };

inline constexpr Instant kWorldStart{1'800'000'000'000};

struct WorldOptions {
  Sabotage sabotage = Sabotage::None;
  std::size_t trace_lines = 64;
};

struct World {
  World(std::uint64_t seed, const WorldOptions& options);
  ~World();

  Instant now() const { return timeline.now(); }
  void fail(const char* rule, std::string detail) { verdict.fail(now(), rule, std::move(detail)); }
  void note(const char* what, std::uint64_t a = 0, std::uint64_t b = 0) {
    trace.note(now(), what, a, b);
  }

  // The market's process. Absent while it is down.
  void start_market();
  // It starts again by itself after a while, and then has the state of this digest.
  void crash_market(std::uint64_t durable_digest);
  // A number that no other process has: what was sent to an older one is lost.
  std::uint64_t market_life = 0;

  const Sabotage sabotage;
  Prng random;
  FaultRates rates;
  bool faults = true;  // false: the liveness phase
  Timeline timeline{kWorldStart};
  Verdict verdict;
  Trace trace;
  Promises promises{verdict};
  Containers containers{verdict, promises};
  SimDisk disk;
  std::uint64_t starts = 0;  // of the market, as its directory counts them
  agent_core::StartRecord start_record;
  std::uint64_t core_events = 0;
  std::uint64_t commands = 0;
  std::map<NodeId, std::unique_ptr<Link>> links;
  std::map<NodeId, std::unique_ptr<SimNode>> nodes;
  std::optional<std::uint64_t> durable_digest;  // what the next start must find
  // Set: the next turn with something to store dies there.
  std::optional<TurnDeath> next_death;
  std::unique_ptr<MarketProcess> market;
  std::unique_ptr<MarketProcess> dead_market;  // it may still be on the stack
};

}  // namespace bmgpu::sim
