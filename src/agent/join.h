// `bm-agent join` and `bm-agent leave`: how a machine becomes a node of a market, and stops being
// one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "agent/config.h"
#include "base/result.h"

namespace bmgpu::v1 {
class NodeFile;
}
namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

// Uses a join token (once) and writes node.json. A machine that is in a market already: Refused,
// unless the token is of the same market and node name, which renews its secret. Nothing is changed
// by a failure.
Result<v1::NodeFile> join(const AgentConfig& config, std::string_view token);

// Ends this node: the agent, its jobs, the guard, the container engine's service and everything of
// it on this machine but the configuration and the empty state folder; node.json last, so that a
// leave that failed half-way can be repeated. bmd sees the node as lost and keeps its name until an
// operator removes it (bmcli nodes remove). Not joined: NotFound.
Result<void> leave(const AgentConfig& config, wire::Log& log, std::chrono::milliseconds limit);

}  // namespace bmgpu::agent
