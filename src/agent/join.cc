#include "agent/join.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "agent/agent.h"
#include "agent/gpu/cdi.h"
#include "agent/guard.h"
#include "agent/node_file.h"
#include "agent/own_program.h"
#include "agent/permission_page.h"
#include "agent/process_lock.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"
#include "wire/hash.h"
#include "wire/join_token.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollPeriod{20};
constexpr std::size_t kKeyBytes = 16;

Error explain(const Error& error, const v1::JoinToken& token) {
  switch (error.code) {
    case ErrorCode::Unavailable:
    case ErrorCode::DeadlineExceeded:
      return {error.code, "the market at " + token.url() + " cannot be reached: " + error.message +
                              "; check the network between this machine and it"};
    case ErrorCode::Unauthenticated:
      return {error.code, "the market refuses the token: " + error.message +
                              "; a join token works once and for at most 10 minutes: ask for a new "
                              "one (bmcli token create --role node-join --node " +
                              token.node() + ")"};
    case ErrorCode::AlreadyExists:
      return {error.code, "the market refuses the name: " + error.message +
                              "; ask for a token with another name, or have an operator remove the "
                              "node that has it (bmcli nodes remove " +
                              token.node() + ")"};
    default:
      return error;
  }
}

// Ends every attempt through its shim. DeadlineExceeded names those that did not end.
Result<void> end_attempts(const AgentConfig& config, wire::Log& log, Clock::time_point deadline) {
  std::vector<AttemptDir> left;
  for (const AttemptName& name : list_attempts(config.state_dir)) {
    AttemptDir dir(config.state_dir, name);
    v1::ShimWant want;
    if (Result<v1::ShimWant> before = dir.read_want(); before) {
      want = std::move(*before);
    }
    want.set_stop(true);
    const Result<v1::AttemptStatus> status = dir.read_status();
    const bool ended = status && status->phase() == v1::ATTEMPT_PHASE_ENDED;
    if (Result<void> written = ended ? Result<void>() : dir.write_want(want); !written) {
      return written;
    }
    if (!ended && !dir.shim_alive()) {
      log.info("a shim is started to end an attempt", {{"attempt", name.text()}});
      if (Result<void> spawned = spawn_shim(dir, {own_program(), "shim"}); !spawned) {
        return spawned;
      }
    }
    left.push_back(std::move(dir));
  }
  while (!left.empty()) {
    std::erase_if(left, [](const AttemptDir& dir) {
      const Result<v1::AttemptStatus> status = dir.read_status();
      return status && status->phase() == v1::ATTEMPT_PHASE_ENDED && !dir.shim_alive() &&
             dir.remove().ok();
    });
    if (!left.empty() && Clock::now() > deadline) {
      return Error{ErrorCode::DeadlineExceeded,
                   left.front().path() + " does not end; look at its shim.log and run leave again"};
    }
    if (!left.empty()) {
      std::this_thread::sleep_for(kPollPeriod);
    }
  }
  return {};
}

// Everything of the node on this machine but its identity; tenants' files above all.
Result<void> remove_files(const AgentConfig& config, const v1::NodeFile& node) {
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(runtime_options(config, node));
  Result<void> removed = runtime ? (*runtime)->remove_all() : runtime.error();
  if (removed) {
    removed = remove_cdi(config.cdi.dir, cdi_kind_of(config, node));
  }
  if (removed) {
    removed = remove_simulated_devices(device_dir(config));
  }
  for (const std::string& path : {guard_dir(config.state_dir), config.state_dir + "/attempts",
                                  config.state_dir + "/blobs", config.state_dir + "/gpus.known"}) {
    if (removed) {
      removed = remove_tree(path);
    }
  }
  return removed;
}

}  // namespace

Result<v1::NodeFile> join(const AgentConfig& config, std::string_view text) {
  const Result<v1::JoinToken> token = wire::decode_join_token(text);
  if (!token) {
    return token.error();
  }
  const Result<v1::NodeFile> present = read_node_file(config.state_dir);
  if (present && (present->url() != token->url() || present->name() != token->node())) {
    return Error{ErrorCode::Refused, "this machine is " + present->name() + " of " +
                                         present->url() +
                                         " already; run bm-agent leave first, or use another "
                                         "--state-dir"};
  }
  // Shows that the folder can be written before the token is spent.
  if (Result<void> made = make_dirs(config.state_dir); !made) {
    return made.error();
  }
  if (access(config.state_dir.c_str(), W_OK) != 0) {
    return errno_error("write to " + config.state_dir, errno);
  }
  Result<std::unique_ptr<wire::Client>> client =
      wire::Client::create({token->url(), token->ca_sha256(), token->secret()});
  if (!client) {
    return client.error();
  }
  v1::JoinRequest request;
  request.set_node_name(token->node());
  request.set_agent_version(BMGPU_VERSION);
  v1::JoinResponse response;
  const Result<void> joined = (*client)->call("bmgpu.v1.Agent/Join", request, response,
                                              "join-" + wire::hex(wire::random_bytes(kKeyBytes)));
  if (!joined) {
    return explain(joined.error(), *token);
  }
  v1::NodeFile node;
  node.set_node(response.node());
  node.set_name(response.name().empty() ? token->node() : response.name());
  node.set_secret(response.secret());
  node.set_market(response.market());
  node.set_url(token->url());
  node.set_heartbeat(response.heartbeat_address().empty() ? token->heartbeat()
                                                          : response.heartbeat_address());
  node.set_ca_sha256(token->ca_sha256());
  if (Result<void> written = write_node_file(config.state_dir, node); !written) {
    return written.error();
  }
  return node;
}

Result<void> leave(const AgentConfig& config, wire::Log& log, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const Result<v1::NodeFile> node = read_node_file(config.state_dir);
  if (!node) {
    return node.error();
  }
  const std::string lock_path = agent_lock_path(config.state_dir);
  if (Result<void> stopped = ProcessLock::stop_holder(lock_path, limit); !stopped) {
    return stopped;
  }
  // A service manager may start the agent again: it finds the folder taken.
  const Result<ProcessLock> lock = ProcessLock::take(lock_path);
  if (!lock) {
    return Error{lock.error().code, "bm-agent was started again (" + lock.error().message +
                                        "); stop its service first: systemctl stop bm-agent"};
  }
  if (Result<void> ended = end_attempts(config, log, deadline); !ended) {
    return ended;
  }
  if (Result<void> stopped = stop_guard(config.state_dir, limit); !stopped) {
    return stopped;
  }
  if (Result<void> removed = remove_files(config, *node); !removed) {
    return Error{removed.error().code,
                 removed.error().message + "; remove it or its user, then run leave again"};
  }
  // The identity goes last: as long as it is there, leave can be repeated.
  for (const std::string& file : {node_file_path(config.state_dir), lock_path}) {
    if (unlink(file.c_str()) != 0 && errno != ENOENT) {
      return errno_error("remove " + file, errno);
    }
  }
  return {};
}

}  // namespace bmgpu::agent
