// A shim without a container, for tests: takes the attempt's lock, says that the job runs, prints
// one line, and ends it when it is told to stop.

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>

#include "agent/host/facts.h"
#include "agent/runtime/attempt_dir.h"
#include "agent/runtime/files.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

int run(const AttemptDir& dir) {
  const Fd lock(open(dir.lock_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    return 0;
  }
  const Result<v1::ShimOrder> order = dir.read_order();
  if (!order) {
    return 1;
  }
  const Fd notices(inotify_init1(IN_CLOEXEC));
  inotify_add_watch(notices.get(), dir.path().c_str(), IN_MOVED_TO);
  v1::AttemptStatus status;
  status.set_lease(order->spec().lease());
  status.set_rank(order->spec().rank());
  status.set_attempt(order->spec().attempt());
  status.set_incarnation(order->spec().incarnation());
  status.set_phase(v1::ATTEMPT_PHASE_RUNNING);
  status.set_running_since_unix_ms(unix_ms());
  if (!dir.write_status(status)) {
    return 1;
  }
  std::FILE* log = std::fopen(dir.log_path().c_str(), "a");
  std::fputs("2026-11-30T18:00:00.000000000+00:00 stdout F running\n", log);
  std::fclose(log);
  while (true) {
    const Result<v1::ShimWant> want = dir.read_want();
    if (want && want->stop()) {
      break;
    }
    pollfd readable{notices.get(), POLLIN, 0};
    if (poll(&readable, 1, 60'000) <= 0 || access(dir.path().c_str(), F_OK) != 0) {
      return 1;  // forgotten by the test
    }
    char buffer[4096];
    if (read(notices.get(), buffer, sizeof buffer) <= 0) {
      return 1;
    }
  }
  status.set_phase(v1::ATTEMPT_PHASE_ENDED);
  status.set_end_reason(v1::END_REASON_STOPPED);
  status.set_ended_unix_ms(unix_ms());
  return dir.write_status(status) ? 0 : 1;
}

}  // namespace
}  // namespace bmgpu::agent

int main(int argc, char** argv) {
  return argc == 2 ? bmgpu::agent::run(bmgpu::agent::AttemptDir(argv[1])) : 2;
}
