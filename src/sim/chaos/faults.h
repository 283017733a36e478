// Which faults a seed has and how often: drawn once, so that some seeds know one kind only.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "base/time.h"

namespace bmgpu::sim {

// Parts of the environment that may be broken on purpose, to see that a checker finds it.
enum class Sabotage {
  None,
  StoreAcknowledgesEarly,   // a crash loses what was promised
  MarketFreesGpusEarly,     // it waits for no node's word; nodes do not look whose a GPU is
  AgentIgnoresTokens,       // every set that comes is in force, however old
  ShimIgnoresLeaseEnd,      // only the market ends a job
  AgentLiesAboutClean,      // a GPU is clean while a job is on it, and taken without a look
  BillsAreInflated,         // what the ledger gets is more than what was decided
  GuardExtendsPermissions,  // a permission counts from when its answer came
};

// The mean time between two faults of a kind, all nodes together; zero: never.
struct FaultRates {
  Duration market_crash;
  Duration disk_full;
  Duration market_pause;  // bmd does not run for 1 to 5 s
  Duration node_crash;
  Duration agent_crash;
  Duration shim_crash;
  Duration guard_crash;
  Duration gpu_failure;
  Duration engine_hang;
  Duration one_way_cut;
  Duration full_cut;
  Duration broken_streams;
  Duration gpu_change;                      // a card is taken out, or put in again
  std::uint64_t slow_permille = 0;          // of messages
  std::uint64_t request_loss_permille = 0;  // of people's requests and answers
  std::uint64_t request_repeat_permille = 0;
  // In percent of market crashes: where in a turn it dies. The rest: between turns.
  std::uint64_t crash_before_store = 0;
  std::uint64_t crash_before_send = 0;
  std::uint64_t crash_while_sending = 0;
};

FaultRates draw_fault_rates(Prng& random);

}  // namespace bmgpu::sim
