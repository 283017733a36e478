#include "agent/guard.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "agent/guard_heart.h"
#include "agent/permission_page.h"
#include "agent/process_lock.h"
#include "agent/runtime/detach.h"
#include "agent/runtime/files.h"
#include "agent/runtime/service.h"
#include "bmgpu/v1/node_files.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr int kRealtimePriority = 10;
constexpr int kNiceness = -20;

std::string lock_path(const std::string& state_dir) { return guard_dir(state_dir) + "/lock"; }
std::string log_path(const std::string& state_dir) { return guard_dir(state_dir) + "/log"; }

// Nothing of the machine's load may keep a heartbeat from going out: no page of the guard is ever
// swapped, it runs before every ordinary process, and it is the last that the kernel would kill.
// Each is a help and none a condition, so that the guard also works without the rights.
void take_precedence(wire::Log& log) {
  const bool locked = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
  sched_param priority{};
  priority.sched_priority = kRealtimePriority;
  const bool realtime = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  const bool nice_enough = setpriority(PRIO_PROCESS, 0, kNiceness) == 0;
  const bool spared = write_kernel_file("/proc/self/oom_score_adj", "-1000").ok();
  log.info("guard precedence", {{"memory_locked", locked},
                                {"realtime", realtime},
                                {"nice", nice_enough},
                                {"oom_spared", spared}});
}

}  // namespace

int guard_main(const std::string& state_dir, wire::Log& log) {
  if (const Result<void> made = make_dirs(guard_dir(state_dir)); !made) {
    log.error("the guard cannot start", {{"why", made.error().message}});
    return 1;
  }
  const Result<ProcessLock> lock = ProcessLock::take(lock_path(state_dir));
  if (!lock) {
    log.info("the guard does not start", {{"why", lock.error().message}});
    return lock.error().code == ErrorCode::Unavailable ? 0 : 1;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  take_precedence(log);
  Result<std::unique_ptr<GuardHeart>> heart = GuardHeart::create(state_dir, log);
  if (!heart) {
    log.error("the guard cannot start", {{"why", heart.error().message}});
    return 1;
  }
  (*heart)->run();
  log.info("the guard ends");
  return 0;
}

bool guard_alive(const std::string& state_dir) { return ProcessLock::held(lock_path(state_dir)); }

Result<void> ensure_guard(const std::string& state_dir, const std::vector<std::string>& program) {
  if (guard_alive(state_dir)) {
    return {};
  }
  if (Result<void> made = make_dirs(guard_dir(state_dir)); !made) {
    return made;
  }
  // In the cgroup of the node's other lasting processes, which `leave` removes.
  v1::RuntimeFacts node;
  node.set_root(state_dir + "/containers");
  return start_detached(program, guard_dir(state_dir), log_path(state_dir), cgroup_parent(node));
}

Result<void> stop_guard(const std::string& state_dir, std::chrono::milliseconds limit) {
  return ProcessLock::stop_holder(lock_path(state_dir), limit);
}

}  // namespace bmgpu::agent
