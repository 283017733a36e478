// A node of a test's own: podman storage, run folder, a busybox image, four simulated GPUs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/runtime/runtime.h"
#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

// Looks every few milliseconds. False after `deadline`.
bool eventually(const std::function<bool()>& condition,
                std::chrono::seconds deadline = std::chrono::seconds(60));

// One store for all tests of a process; `image` is "localhost/busybox:test".
const std::string& busybox_store();
inline constexpr char kImage[] = "localhost/busybox:test";  // sets CUDA_VISIBLE_DEVICES, IMAGE_SAYS
inline constexpr char kUserImage[] = "localhost/busybox:user";  // runs as user 1000

class TestNode {
 public:
  // With `disk_mib` the state folder is a disk (tmpfs) of that size.
  explicit TestNode(const std::string& name = "node-1", int disk_mib = 0);
  ~TestNode();  // ends everything and removes it
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  Runtime& runtime() { return *runtime_; }
  std::string state_dir() const { return dir_.file("state"); }
  std::string runtime_root() const { return runtime_->facts().root(); }
  RuntimeOptions options() const;

  // A spec whose command is run by the shell; lease numbers count up.
  v1::AttemptSpec spec(const std::string& script,
                       std::chrono::seconds lease = std::chrono::hours(1));
  // Writes the order and starts a shim. The GPUs of the spec are GPU-0 … GPU-<gpus−1>.
  AttemptDir start(const v1::AttemptSpec& spec, const std::vector<int>& minors = {});
  v1::ShimOrder order(const v1::AttemptSpec& spec, const std::vector<int>& minors) const;
  AttemptDir start_order(const v1::ShimOrder& order);
  void spawn(const AttemptDir& dir);

  bool wait_for(const AttemptDir& dir, v1::AttemptPhase phase);
  v1::AttemptStatus ended(const AttemptDir& dir);  // waits for it
  std::string log(const AttemptDir& dir) const;    // texts, one a line
  int shim_pid(const AttemptDir& dir) const;
  void kill_shim(const AttemptDir& dir);     // −9, and waits until it is gone
  int container_pid(const AttemptDir& dir);  // 0 if there is none
  std::vector<int> job_pids(const AttemptDir& dir);

  // Empty once nothing of any attempt is left: containers, mounts, loop devices, files. A container
  // of somebody else that is just being made holds a copy of every mount for a moment, so it is
  // looked at until that has passed.
  std::string leftovers();

 private:
  std::string leftovers_now();
  TempDir dir_;
  std::string name_;
  std::string cdi_path_;
  int disk_mib_ = 0;
  std::unique_ptr<Runtime> runtime_;
  int leases_ = 0;
};

}  // namespace bmgpu::agent
