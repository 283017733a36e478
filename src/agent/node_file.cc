#include "agent/node_file.h"

#include "agent/runtime/files.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/encoding.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kNodeFileBytesMax = 64 * 1024;

}  // namespace

std::string node_file_path(const std::string& state_dir) { return state_dir + "/node.json"; }

Result<v1::NodeFile> read_node_file(const std::string& state_dir) {
  const std::string path = node_file_path(state_dir);
  const Result<std::string> bytes = read_file(path, kNodeFileBytesMax);
  if (!bytes) {
    if (bytes.error().code == ErrorCode::NotFound) {
      return Error{ErrorCode::NotFound, "this machine is in no market yet (" + path +
                                            " is missing); run: bm-agent join --token-file FILE"};
    }
    return bytes.error();
  }
  v1::NodeFile node;
  const Result<void> decoded = wire::decode(wire::Encoding::Json, *bytes, node);
  if (!decoded || node.node().empty() || node.secret().empty() || node.url().empty() ||
      node.heartbeat().empty() || node.market().empty()) {
    return Error{ErrorCode::DataLoss, path + " is damaged" +
                                          (decoded ? "" : ": " + decoded.error().message) +
                                          "; run bm-agent join with a new token"};
  }
  return node;
}

Result<void> write_node_file(const std::string& state_dir, const v1::NodeFile& node) {
  if (Result<void> made = make_dirs(state_dir); !made) {
    return made;
  }
  return write_file(node_file_path(state_dir), wire::encode(wire::Encoding::Json, node), 0600,
                    Durability::Fsync);
}

wire::Endpoint session_endpoint(const v1::NodeFile& node) {
  return {node.url(), node.ca_sha256(), node.secret()};
}

wire::Endpoint heartbeat_endpoint(const v1::NodeFile& node) {
  const std::string scheme = node.url().substr(0, node.url().find("://") + 3);
  return {scheme + node.heartbeat(), node.ca_sha256(), node.secret()};
}

}  // namespace bmgpu::agent
