#include "agent/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "agent/agent.h"
#include "agent/gpu/doctor.h"
#include "agent/guard.h"
#include "agent/host/facts.h"
#include "agent/node_file.h"
#include "agent/permission_page.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/json.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDriverLimit{10'000};
constexpr milliseconds kMarketLimit{5000};
// Beyond the first the node loses time in which its leases are metered; beyond the second the
// market closes its gate `clock`.
constexpr std::int64_t kClockOffsetWarnMs = 5000;
constexpr std::int64_t kClockOffsetMaxMs = 30'000;

// Reachable, and with the right secret: the market answers who we are, and what time it is.
std::vector<DoctorCheck> check_market(const v1::NodeFile& node) {
  DoctorCheck reach{"market", false, node.url(), ""};
  DoctorCheck token{"token", false, "not tried", "make the check \"market\" pass first"};
  DoctorCheck clock{"clock skew", false, "not known", "make the check \"market\" pass first"};
  Result<std::unique_ptr<wire::Client>> client = wire::Client::create(session_endpoint(node));
  v1::GetInfoResponse info;
  const std::int64_t before = unix_ms();
  const Result<void> answer = client ? (*client)->call("bmgpu.v1.Market/GetInfo",
                                                       v1::GetInfoRequest(), info, "", kMarketLimit)
                                     : client.error();
  const std::int64_t middle = before + (unix_ms() - before) / 2;
  const bool refused = !answer && answer.error().code == ErrorCode::Unauthenticated;
  if (!answer && !refused) {
    reach.detail = answer.error().message;
    reach.advice = "check that bmd runs and that this machine reaches " + node.url();
    return {reach, token, clock};
  }
  reach.ok = true;
  if (refused) {
    token.detail = answer.error().message;
    token.advice = "the node's token was revoked: ask for a new join token and run bm-agent join";
    return {reach, token, clock};
  }
  token = {"token", true, node.node() + " (" + node.name() + ")", ""};
  const std::int64_t ahead = middle - info.now_unix_ms();
  clock = {"clock skew", ahead <= kClockOffsetMaxMs && ahead >= -kClockOffsetMaxMs,
           std::to_string(ahead) + " ms ahead of the market", ""};
  if (ahead > kClockOffsetWarnMs || ahead < -kClockOffsetWarnMs) {
    clock.advice =
        "set the clock, or run a time service (chrony, systemd-timesyncd); beyond 30 s "
        "the node is not offered";
  }
  return {reach, token, clock};
}

DoctorCheck check_guard(const std::string& state_dir) {
  if (!guard_alive(state_dir)) {
    return {"guard", false, "does not run", "start the agent: bm-agent run"};
  }
  const Result<PermissionReader> page = PermissionReader::open(permission_path(state_dir));
  const std::optional<PublishedPermission> published =
      page ? page->read(read_boot_id()) : std::nullopt;
  const bool permitted =
      published && agent_core::permits(published->permission, boottime_ms() * 1'000'000);
  return {"guard", permitted,
          permitted ? "heartbeats are answered" : "runs, but has no answer from the market",
          permitted ? "" : "look at " + state_dir + "/guard/log"};
}

DoctorCheck check_agent(const std::string& state_dir) {
  const bool runs = ProcessLock::held(agent_lock_path(state_dir));
  return {"agent", runs, runs ? "runs" : "does not run",
          runs ? "" : "start it: bm-agent run (or: systemctl start bm-agent)"};
}

const char* verdict(const DoctorCheck& check) {
  return !check.ok ? "failed" : check.advice.empty() ? "ok" : "warning";
}

void append(std::vector<DoctorCheck>& to, std::vector<DoctorCheck> checks) {
  std::move(checks.begin(), checks.end(), std::back_inserter(to));
}

}  // namespace

std::vector<DoctorCheck> run_doctor(const AgentConfig& config) {
  std::vector<DoctorCheck> checks;
  const bool root = geteuid() == 0;
  checks.push_back({"root", root, root ? "yes" : "no", root ? "" : "run it as root"});
  const bool present = access(config.state_dir.c_str(), F_OK) == 0;
  append(checks, doctor_host(present ? config.state_dir : "/"));

  const Result<v1::NodeFile> node = read_node_file(config.state_dir);
  checks.push_back({"joined", node.ok(),
                    node ? node->name() + " of " + node->url() : node.error().message,
                    node ? "" : "run bm-agent join with a token of the market's operator"});
  v1::NodeFile name;
  if (node) {
    name = *node;
    append(checks, check_market(*node));
    checks.push_back(check_agent(config.state_dir));
    checks.push_back(check_guard(config.state_dir));
  }
  if (Result<std::unique_ptr<GpuProbe>> probe = GpuProbe::start(probe_options(config)); probe) {
    const GpuView view = (*probe)->refresh(kDriverLimit);
    // Made of market and node unless configured: before it has joined, the node has none.
    const bool named = node.ok() || !config.cdi.kind.empty();
    append(checks, doctor_gpus(view, {config.cdi.dir, named ? cdi_kind_of(config, name) : "",
                                      view.simulated ? device_dir(config) : ""}));
  } else {
    checks.push_back({"gpu driver", false, probe.error().message, "correct the configuration"});
  }
  if (node && root) {
    Result<std::unique_ptr<Runtime>> runtime = Runtime::create(runtime_options(config, *node));
    append(checks,
           runtime ? (*runtime)->doctor()
                   : std::vector<DoctorCheck>{{"container engine", false, runtime.error().message,
                                               "install podman and runc (Debian: apt-get "
                                               "install podman runc)"}});
  }
  return checks;
}

bool all_ok(const std::vector<DoctorCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const DoctorCheck& c) { return c.ok; });
}

std::string doctor_text(const std::vector<DoctorCheck>& checks) {
  std::size_t width = 0;
  for (const DoctorCheck& check : checks) {
    width = std::max(width, check.name.size());
  }
  std::string text;
  for (const DoctorCheck& check : checks) {
    const std::string_view word = verdict(check);
    text += std::string(word == "ok" ? "ok    " : word == "warning" ? "warn  " : "FAIL  ");
    text += check.name + std::string(width - check.name.size() + 2, ' ') + check.detail + "\n";
    if (!check.advice.empty()) {
      text += std::string(width + 8, ' ') + "→ " + check.advice + "\n";
    }
  }
  return text;
}

std::string doctor_json(const std::vector<DoctorCheck>& checks) {
  std::string json = all_ok(checks) ? R"({"ok":true,"checks":[)" : R"({"ok":false,"checks":[)";
  for (const DoctorCheck& check : checks) {
    json += &check == checks.data() ? "{\"name\":" : ",{\"name\":";
    wire::append_json_string(json, check.name);
    json += std::string(",\"verdict\":\"") + verdict(check) + "\",\"detail\":";
    wire::append_json_string(json, check.detail);
    json += ",\"advice\":";
    wire::append_json_string(json, check.advice);
    json += '}';
  }
  return json + "]}\n";
}

}  // namespace bmgpu::agent
