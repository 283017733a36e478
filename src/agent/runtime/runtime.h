// The container runtime of a node, as the agent sees it: one podman with storage, run folder and
// service of its own. Jobs themselves belong to shims (shim.h); the agent never starts, signals,
// freezes or kills one through this class.
//
// Thread-safe. Every call has a deadline and may block that long; none throws.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/host/doctor.h"
#include "agent/runtime/attempt_dir.h"
#include "base/result.h"

namespace bmgpu::v1 {
class AttemptSpec;
class RuntimeFacts;
class ShimOrder;
}  // namespace bmgpu::v1

namespace bmgpu::agent {

struct RuntimeOptions {
  std::string state_dir;
  std::string market;  // labels of our containers
  std::string node;
  std::string podman = "podman";          // a path, or a name looked for in PATH
  std::string oci_runtime = "auto";       // auto | runc | crun
  std::vector<std::string> image_stores;  // further read-only image stores
  std::string init_path;                  // bm-init; empty = beside the running program
  std::string run_dir;                    // empty = default_run_dir(state_dir)
  std::string nat_subnet = "10.215.0.0/16";
};

// "/run/bm-agent/<hash of state_dir>": short, because unix socket paths are.
std::string default_run_dir(const std::string& state_dir);

struct DeviceGrant {
  std::string uuid;
  std::string cdi_name;  // "<kind>=<uuid>"
  std::uint32_t minor = 0;
};

struct ContainerInfo {
  std::string id;
  std::string name;
  AttemptName attempt;
  std::uint64_t incarnation = 0;
  bool running = false;
};

class Runtime {
 public:
  // Makes the folders, probes the engine (or takes <state_dir>/runtime.json if it is of this boot,
  // these options and this podman), and starts the podman service if it does not answer. After a
  // reboot everything of ours is removed first. Works with a broken engine too: the error tells.
  static Result<std::unique_ptr<Runtime>> create(RuntimeOptions options);
  virtual ~Runtime() = default;

  virtual v1::RuntimeFacts facts() const = 0;
  virtual std::string summary() const = 0;  // "podman 4.3.1 runc 1.1.5 cgroup-v1"
  virtual std::string socket() const = 0;   // of the libpod service, for exec.h

  // Starts the service again if it is gone, and runs a container of bm-init alone to its end.
  // Unavailable says what to look at; the node's gate `runtime` is this answer.
  virtual Result<void> canary(std::chrono::milliseconds deadline) = 0;

  virtual Result<std::vector<std::string>> images() = 0;  // references present, sorted
  // Containers with this market's and this node's label, whatever their state. Those of canaries
  // that nobody runs any more are removed by the way.
  virtual Result<std::vector<ContainerInfo>> containers() = 0;
  // Kills (by cgroup files) and removes a container that no shim owns.
  virtual Result<void> remove_orphan(const ContainerInfo& container) = 0;

  // The order of an attempt: spec, facts, labels, paths. The caller writes it with AttemptDir.
  virtual v1::ShimOrder order(const v1::AttemptSpec& spec,
                              const std::vector<DeviceGrant>& devices) const = 0;
  // Keeps `count` formatted scratch files of each of these sizes ready; removes other sizes.
  virtual Result<void> refill_scratch(const std::vector<std::int64_t>& sizes_mib, int count) = 0;

  virtual std::vector<DoctorCheck> doctor() = 0;
  // Stops the service and removes run folder and storage. REQUIRES: no attempt lives.
  virtual Result<void> remove_all() = 0;
};

// Starts `program args… <attempt folder>` as a shim: detached (own session, own cgroup, reparented
// to init), with nothing of ours open. One that finds the lock taken exits at once, so a spawn too
// many is harmless. Standard error goes to <attempt folder>/shim.log.
Result<void> spawn_shim(const AttemptDir& dir, const std::vector<std::string>& program);

}  // namespace bmgpu::agent
