// Between what nodes say and core's commands. No state of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controld/directory.h"
#include "controld/turn.h"
#include "core/views.h"

namespace bmgpu::v1 {
class AttemptSpec;
class AttemptStatus;
class GpuCondition;
class Inventory;
class JobSpec;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

struct GpuReading;

core::RegisterNode register_command(const NodeEntry& node, const v1::Inventory& inventory);

v1::AttemptSpec attempt_spec(const core::DesiredAttempt& attempt, const v1::JobSpec& job);

GpuReading reading_of(const v1::GpuCondition& condition);

// Whether the newest allocation of the lease has that rank on that node.
bool holds_rank(const core::State& state, LeaseId lease, std::uint32_t rank, NodeId node);

// Running and ended attempts. The node's times are moved by `clock_offset` onto the market's clock
// and are never later than now. REQUIRES: holds_rank().
void report_attempt(Turn& turn, LeaseId lease, const v1::AttemptStatus& status,
                    Duration clock_offset);

// Tells core only what it does not know yet. `clean` absent: not looked at.
void report_gpu(Turn& turn, NodeId node, const std::string& uuid, bool ok,
                std::optional<bool> clean);

}  // namespace bmgpu::controld
