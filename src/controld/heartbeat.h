// /bmgpu.v1.Agent/Heartbeat: answers guards from the published table, on the edge thread of the
// heartbeat listener's own server. Never touches the market loop or the journal.
#pragma once

#include <functional>

#include "api/server.h"
#include "controld/liveness.h"

namespace bmgpu::controld {

class Metrics;

struct HeartbeatParts {
  Liveness& liveness;
  Metrics& metrics;
  Incarnation incarnation;
};

// Adds the WebSocket to `server`. What `parts` names outlives the server's edge thread.
void serve_heartbeats(api::Server& server, HeartbeatParts parts);

}  // namespace bmgpu::controld
