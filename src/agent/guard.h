// `bm-agent guard`: a tiny process that holds the node's permission to run jobs.
//
// It sends bmd one heartbeat every 0.5 s on a connection of its own and publishes what the answers
// permit (permission_page.h). It is started by the first `bm-agent run` that finds none alive, and
// outlives every agent: an agent that is killed, updated or busy costs the node nothing.
//
// It ends when node.json is gone (the node left its market), on SIGTERM (`bm-agent run
// --stop-guard` and `bm-agent leave` send it), and never because bmd is away: then it tries again,
// after 0.05 s at first and 1 s at most. A changed node.json (joined anew) makes it connect as the
// new node. When it ends it publishes no permission.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

// The process: returns its exit code. 0 also if another guard of this state folder lives.
int guard_main(const std::string& state_dir, wire::Log& log);

// Whether a guard of this state folder lives.
bool guard_alive(const std::string& state_dir);

// Starts `program… ` (this executable with "guard --state-dir D") detached, unless a guard lives.
// Its log goes to <state_dir>/guard/log, which starts anew when it is over 1 MiB.
Result<void> ensure_guard(const std::string& state_dir, const std::vector<std::string>& program);

// Asks a living guard to end and waits for it. None alive: fine.
Result<void> stop_guard(const std::string& state_dir, std::chrono::milliseconds limit);

}  // namespace bmgpu::agent
