#include "agent/runtime/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/container.h"
#include "agent/runtime/files.h"
#include "agent/runtime/network.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/scratch.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNofileMax = 1'048'576;
constexpr std::int64_t kNprocMax = 1'048'576;
constexpr std::chrono::seconds kProbeDeadline{30};
constexpr std::chrono::seconds kStaleDeadline{2};
constexpr const char* kCanaryLabel = "io.bmgpu.canary";

// A container's limits may not exceed those of the service, which lowers its own at its start;
// without a number the engine asks for more than that and fails.
std::int64_t limit_of(int pid, int resource, std::int64_t most) {
  rlimit limit = {};
  if (::prlimit(pid, static_cast<__rlimit_resource>(resource), nullptr, &limit) != 0 ||
      limit.rlim_max == RLIM_INFINITY) {
    return most;
  }
  return std::min(most, static_cast<std::int64_t>(limit.rlim_max));
}

Result<void> try_oci_runtime(v1::RuntimeFacts& facts, const std::string& dir) {
  // A service with another runtime, of an earlier probe, must not answer for this one.
  if (Result<void> stopped = stop_service(facts, kProbeDeadline); !stopped.ok()) {
    return stopped;
  }
  if (Result<void> started = ensure_service(facts, kProbeDeadline); !started.ok()) {
    return started;
  }
  const Result<int> pid = service_pid(facts);
  if (!pid.ok()) {
    return pid.error();
  }
  facts.set_nofile_max(limit_of(*pid, RLIMIT_NOFILE, kNofileMax));
  facts.set_nproc_max(limit_of(*pid, RLIMIT_NPROC, kNprocMax));
  return run_canary(facts, dir, kProbeDeadline);
}

// A root with bm-init alone. A copy, because the program may be replaced while it is in use.
Result<std::string> canary_root(const v1::RuntimeFacts& facts, const std::string& dir) {
  const std::string root = dir + "/canary";
  for (const char* folder : {"/dev", "/proc", "/sys", "/etc", "/run"}) {
    if (Result<void> made = make_dirs(root + folder, 0755); !made.ok()) {
      return made.error();
    }
  }
  Result<std::string> program = read_file(facts.init_path());
  if (!program.ok()) {
    return Error{ErrorCode::NotFound, "bm-init: " + program.error().message +
                                          "; set runtime.init in the agent's configuration"};
  }
  if (Result<void> copied = write_file(root + "/bm-init", *program, 0755); !copied.ok()) {
    return copied.error();
  }
  return root;
}

// Whoever runs a canary holds this lock, so that whoever gets it knows that none runs.
Fd canary_lock(const v1::RuntimeFacts& facts, Clock::time_point end) {
  Fd lock(::open((facts.run_dir() + "/canary.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  while (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (Clock::now() >= end) {
      return Fd();
    }
    ::poll(nullptr, 0, 10);
  }
  return lock;
}

Result<void> run_to_end(const Podman& podman, const ContainerSpec& spec, Clock::time_point end) {
  Result<std::string> created = podman.create(spec);
  if (!created.ok()) {
    return created.error();
  }
  if (Result<void> started = podman.start(spec.name); !started.ok()) {
    return started;
  }
  while (true) {
    Result<ContainerState> state = podman.inspect(spec.name);
    if (!state.ok()) {
      return state.error();
    }
    if (state->ended()) {
      if (state->exit_code == 0) {
        return {};
      }
      return Error{ErrorCode::Unavailable,
                   "a test container ended with " + std::to_string(state->exit_code)};
    }
    if (Clock::now() >= end) {
      return Error{ErrorCode::DeadlineExceeded, "a test container did not end in time"};
    }
    ::poll(nullptr, 0, 10);
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string last_word(const std::string& text) { return text.substr(text.find_last_of(' ') + 1); }

std::vector<std::string> candidates(const std::string& wanted, const std::string& cgroup) {
  if (wanted != "auto") {
    return {wanted};
  }
  // crun refuses machines that mix the two cgroup versions.
  return cgroup == "v2" ? std::vector<std::string>{"crun", "runc"}
                        : std::vector<std::string>{"runc", "crun"};
}

}  // namespace

Result<void> run_canary(const v1::RuntimeFacts& facts, const std::string& dir,
                        std::chrono::milliseconds deadline) {
  static std::atomic<unsigned> serial{0};
  const Clock::time_point end = Clock::now() + deadline;
  Result<std::string> root = canary_root(facts, dir);
  if (!root.ok()) {
    return root.error();
  }
  if (Result<void> service = ensure_service(facts, deadline); !service.ok()) {
    return service;
  }
  const Fd lock = canary_lock(facts, end);
  if (!lock.valid()) {
    return Error{ErrorCode::Unavailable, "another test container has not ended in time"};
  }
  const Podman podman(service_socket(facts), deadline);
  ContainerSpec spec;
  spec.name = "bm-canary-" + std::to_string(::getpid()) + "-" + std::to_string(++serial);
  spec.root_fs = *root;
  spec.entrypoint = {"/bm-init"};
  spec.command = {"--canary"};
  spec.labels = {{kCanaryLabel, "1"}};
  spec.cgroup_parent = cgroup_parent(facts);
  spec.nofile = facts.nofile_max();
  spec.nproc = facts.nproc_max();
  Result<void> outcome = run_to_end(podman, spec, end);
  if (!outcome.ok()) {
    const std::string why = "podman: " + outcome.error().message;
    if (outcome.error().code != ErrorCode::DeadlineExceeded) {
      (void)destroy_container(facts, podman, spec.name, std::chrono::seconds(2)).ok();
    }
    return Error{ErrorCode::Unavailable, why};
  }
  return destroy_container(
      facts, podman, spec.name,
      std::max(std::chrono::milliseconds(1000),
               std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now())));
}

void remove_stale_canaries(const v1::RuntimeFacts& facts) {
  const Fd lock = canary_lock(facts, Clock::now());
  if (!lock.valid()) {
    return;
  }
  const Podman podman(service_socket(facts));
  const Result<std::vector<ContainerSummary>> stale = podman.list({{kCanaryLabel, "1"}});
  for (const ContainerSummary& one : stale.ok() ? *stale : std::vector<ContainerSummary>()) {
    (void)destroy_container(facts, podman, one.id, kStaleDeadline).ok();
  }
}

Result<void> probe_runtime(v1::RuntimeFacts& facts, const std::string& podman,
                           const std::string& oci_runtime, const std::string& nat_subnet,
                           const std::string& dir) {
  Result<std::string> program = find_program(podman);
  if (!program.ok()) {
    return Error{ErrorCode::Unavailable, program.error().message + "; install podman"};
  }
  facts.set_podman(*program);
  Result<std::string> version = run_ok({*program, "--version"});
  if (!version.ok()) {
    return version.error();
  }
  facts.set_podman_version(last_word(first_line(*version)));
  const CgroupTrees trees = cgroup_trees();
  facts.set_cgroup(cgroup_version(trees));
  facts.set_swap_limit(
      !trees.v1() || ::access((trees.memory + "/memory.memsw.limit_in_bytes").c_str(), F_OK) == 0);
  const Result<void> nat = ensure_nat(nat_subnet);
  facts.set_nat(nat.ok());
  facts.set_nat_detail(nat.ok() ? "" : nat.error().message);
  Error last{ErrorCode::Unavailable, "no OCI runtime (runc or crun) is installed"};
  for (const std::string& candidate : candidates(oci_runtime, facts.cgroup())) {
    const Result<std::string> found = find_program(candidate);
    if (!found.ok()) {
      continue;
    }
    const Result<std::string> words = run_ok({*found, "--version"});
    facts.set_oci_runtime(candidate);
    facts.set_oci_version(words.ok() ? last_word(first_line(*words)) : "");
    const Result<void> works = try_oci_runtime(facts, dir);
    if (works.ok()) {
      return {};
    }
    last = Error{ErrorCode::Unavailable, candidate + ": " + works.error().message};
  }
  facts.clear_oci_runtime();
  return last;
}

Result<void> probe_scratch(const std::string& dir) {
  static std::atomic<unsigned> serial{0};
  const std::string base =
      dir + "/probe-" + std::to_string(::getpid()) + "-" + std::to_string(++serial);
  Result<void> outcome = format_scratch(base + ".img", kScratchMibMin);
  if (outcome.ok()) {
    outcome = mount_scratch(base + ".img", base);
  }
  const Result<void> removed = remove_scratch(base + ".img", base);
  return outcome.ok() ? removed : outcome;
}

}  // namespace bmgpu::agent
