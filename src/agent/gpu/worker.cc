// The worker process: the only one that calls NVML. It answers one question at a time and may hang
// in any of them; its parent kills it then.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <string_view>
#include <thread>

#include "agent/gpu/nvml_device.h"
#include "agent/gpu/probe.h"
#include "agent/gpu/worker_wire.h"

namespace bmgpu::agent {
namespace {

constexpr std::uint32_t kEventWaitMs = 1000;
constexpr std::chrono::milliseconds kBackoffMin{100};
constexpr std::chrono::milliseconds kBackoffMax{60'000};

bool send_frame(int fd, const WorkerFrame& frame) {
  return send(fd, &frame, sizeof frame, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof frame);
}

// Forwards events until the process ends. A driver that fails every wait is asked ever more rarely.
[[noreturn]] void forward_events(int fd, NvmlSession& session) {
  std::chrono::milliseconds backoff = kBackoffMin;
  while (true) {
    GpuEvent event;
    const NvmlStatus status = session.wait_event(kEventWaitMs, event);
    if (status == NvmlStatus::Timeout) {
      backoff = kBackoffMin;
    } else if (status != NvmlStatus::Ok) {
      std::this_thread::sleep_for(backoff);
      backoff = std::min(backoff * 2, kBackoffMax);
    } else {
      WorkerFrame frame;
      frame.op = WorkerOp::Event;
      frame.uuid.set(event.uuid);
      frame.event_kind = event.kind;
      frame.event_data = event.data;
      frame.event_boottime_ms = event.boottime_ms;
      send_frame(fd, frame);
    }
  }
}

class Worker {
 public:
  Worker(int fd, std::string library) : fd_(fd), library_(std::move(library)) {}

  WorkerFrame answer(const WorkerRequest& request) {
    WorkerFrame frame;
    frame.op = request.op;
    frame.serial = request.serial;
    if (request.op == WorkerOp::Open) {
      open(frame);
    } else if (session_ == nullptr) {
      frame.status = NvmlStatus::NotLoaded;
    } else if (request.op == WorkerOp::Count) {
      frame.status = session_->count(frame.count);
    } else if (request.op == WorkerOp::Identify) {
      identify(request.index, frame);
    } else if (request.op == WorkerOp::Sample) {
      bool partitioned = false;
      frame.status = session_->sample(request.uuid.get(), frame.telemetry, partitioned);
      frame.flag = partitioned ? 1 : 0;
    } else if (request.op == WorkerOp::Watch) {
      frame.status = session_->watch(request.uuid.get());
      if (frame.status == NvmlStatus::Ok && !watching_) {
        watching_ = true;
        std::thread(forward_events, fd_, std::ref(*session_)).detach();
      }
    }
    return frame;
  }

 private:
  void open(WorkerFrame& frame) {
    Result<NvmlLibrary> library = NvmlLibrary::load(library_);
    if (!library) {
      frame.driver = DriverState::NoLibrary;
      frame.detail.set(library.error().message);
      return;
    }
    session_ = std::make_unique<NvmlSession>(std::move(*library));
    const NvmlSession::Opened opened = session_->open();
    frame.status = opened.status;
    frame.driver = driver_state(opened.status);
    frame.count = opened.count;
    frame.flag = session_->simulated() ? 1 : 0;
    frame.driver_version.set(opened.driver_version);
    if (opened.status != NvmlStatus::Ok) {
      frame.detail.set(std::string(nvml_status_text(opened.status)) +
                       (opened.detail.empty() ? "" : " (" + opened.detail + ")"));
      session_.reset();
    }
  }

  void identify(std::uint32_t index, WorkerFrame& frame) {
    GpuIdentity identity;
    frame.status = session_->identify(index, identity);
    frame.uuid.set(identity.uuid);
    frame.pci_bus_id.set(identity.pci_bus_id);
    frame.serial_number.set(identity.serial);
    frame.model.set(identity.model);
    frame.form = identity.form;
    frame.memory_mib = identity.memory_mib;
    frame.minor = identity.minor;
  }

  int fd_;
  std::string library_;
  std::unique_ptr<NvmlSession> session_;
  bool watching_ = false;
};

}  // namespace

int nvml_worker_main(int argc, char** argv) {
  int fd = -1;
  std::string library = "auto";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--fd=")) {
      std::from_chars(word.data() + 5, word.data() + word.size(), fd);
    } else if (word.starts_with("--library=")) {
      library = word.substr(10);
    }
  }
  if (fd < 0) {
    std::fprintf(stderr, "nvml-worker is started by bm-agent; it needs --fd=N\n");
    return 2;
  }
  prctl(PR_SET_NAME, "nvml-worker");
  Worker worker(fd, library);
  while (true) {
    WorkerRequest request;
    const ssize_t size = recv(fd, &request, sizeof request, 0);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size != static_cast<ssize_t>(sizeof request) || !send_frame(fd, worker.answer(request))) {
      _exit(0);  // not exit(): a thread may hang in the driver, whose destructors would wait for it
    }
  }
}

}  // namespace bmgpu::agent
