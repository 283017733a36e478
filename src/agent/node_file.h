// <state_dir>/node.json: who this node is in its market. Holds its secret: 0600, never logged.
#pragma once

#include <string>

#include "base/result.h"
#include "wire/client.h"

namespace bmgpu::v1 {
class NodeFile;
}

namespace bmgpu::agent {

std::string node_file_path(const std::string& state_dir);

// NotFound, with the advice to join, if there is none; DataLoss if it is not one.
Result<v1::NodeFile> read_node_file(const std::string& state_dir);
// Durable before it returns. Makes `state_dir` (0700) if it is missing.
Result<void> write_node_file(const std::string& state_dir, const v1::NodeFile& node);

// Where the node's session and its blobs are, and where its guard's heartbeats go.
wire::Endpoint session_endpoint(const v1::NodeFile& node);
wire::Endpoint heartbeat_endpoint(const v1::NodeFile& node);

}  // namespace bmgpu::agent
