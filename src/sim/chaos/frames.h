// What nodes, tenants and the market say to each other: the schema's messages as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent_core/reconcile.h"
#include "core/core.h"
#include "core/views.h"

namespace bmgpu::sim {

// --- node to market ---
struct AttemptStatus {
  agent_core::AttemptKey key;
  Incarnation incarnation;
  agent_core::Phase phase = agent_core::Phase::Preparing;
  std::optional<Instant> running_since;  // by the node's clock
  std::optional<Instant> ended;
  core::EndReason reason = core::EndReason::JobExited;
  std::optional<std::int32_t> exit_code;
  std::string detail;
};
struct Hello {
  Instant clock;
  std::vector<AttemptStatus> attempts;
};
struct Inventory {
  core::NodeCapacity capacity;
  std::vector<core::GpuDescription> gpus;
  std::vector<bool> ok;
  Price owner_floor;
  bool gates_open = true;
  bool operator==(const Inventory&) const = default;
};
struct GpuReading {
  std::string uuid;
  bool ok = true;
  bool clean = false;
  bool operator==(const GpuReading&) const = default;
};
struct GpuReport {
  std::vector<GpuReading> gpus;
};
struct DesiredAnswer {
  Sequence sequence;
  bool held = false;
};
struct LogEnd {  // every line of the attempt's log has been sent
  agent_core::AttemptKey key;
};
using AgentFrame = std::variant<Hello, Inventory, AttemptStatus, GpuReport, DesiredAnswer, LogEnd>;

// --- market to node ---
struct Desired {
  agent_core::DesiredSet set;
  std::vector<core::DesiredAttempt> specs;  // of set.attempts, in the same order
};
struct LogAck {
  agent_core::AttemptKey key;
};
using MarketFrame = std::variant<Desired, LogAck>;

struct Heartbeat {
  std::uint64_t sequence = 0;
  std::int64_t sent_boottime_ns = 0;
  std::uint64_t last_answer_sequence = 0;
};

// --- people to market ---
struct ConfirmNode {  // let it do what its desired set says, however much that ends
  NodeId node;
};
using Call = std::variant<core::Command, ConfirmNode>;
struct Request {
  AccountId account;
  std::string key;  // of idempotency: a repetition has the same
  Call call;
};

// --- market to people ---
struct Reply {
  bool available = true;  // false: nothing happened, try again
  bool refused = false;
  OrderId order{};
  bool has_lease = false;
  Instant lease_end{};  // with a lease
  QuoteId quote{};
  Money total{};  // of the quote, or the most that the lease can cost
  bool operator==(const Reply&) const = default;
};

}  // namespace bmgpu::sim
