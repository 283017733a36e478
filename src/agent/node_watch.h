// What this node has to offer, kept up to date: its GPUs, its container engine, its host.
//
// The engine is asked on a thread of its own, at most one question at a time; one that does not
// answer closes the gate `runtime` after 5 s, whatever it is doing. All else is the loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/config.h"
#include "agent/gpu/cdi.h"
#include "agent/gpu/probe.h"
#include "agent/node_report.h"
#include "agent/runtime/runtime.h"
#include "agent/worker_pool.h"
#include "base/result.h"

namespace bmgpu::v1 {
class NodeFile;
}
namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

class EventLoop;

class NodeWatch {
 public:
  struct Callbacks {
    std::function<void()> on_change;  // GPUs, gates, images, or the engine became ready
    std::function<void(std::vector<ContainerInfo>)> on_containers;  // all of ours, every 5 s
  };

  NodeWatch(EventLoop& loop, wire::Log& log, const AgentConfig& config, const v1::NodeFile& node,
            Callbacks callbacks);
  ~NodeWatch();  // waits for the engine's current answer, at most its deadline

  // Begins to look. An error: the configuration is impossible.
  Result<void> start();

  // Absent until the engine was probed and works.
  Runtime* runtime() const { return runtime_ready_ ? runtime_.get() : nullptr; }
  GpuView gpus() const { return probe_->view(); }
  // The driver was asked once, or too long ago to be waited for.
  bool gpus_known() const;
  NodeFacts facts() const;

  // Devices of these GPUs for a container. NotFound names one that the node does not have.
  Result<std::vector<DeviceGrant>> grants(const std::vector<std::string>& uuids) const;

  // Reads the GPUs anew and calls `done` on the loop.
  void refresh_gpus(std::function<void()> done);
  void remove_container(ContainerInfo container);
  // Keeps a formatted scratch file ready for the next job.
  void refill_scratch();

 private:
  using Clock = std::chrono::steady_clock;
  void create_runtime();
  void look_at_engine();
  void engine_answered(const Result<void>& works, std::vector<std::string> images,
                       std::optional<std::vector<ContainerInfo>> containers);
  void look_at_gates();
  void set_gate(const std::string& name, bool open, const std::string& detail);
  void look_at_devices();
  void keep_devices();
  void find_share();

  EventLoop& loop_;
  wire::Log& log_;
  const AgentConfig& config_;
  const RuntimeOptions runtime_options_;
  const std::string cdi_kind_;
  const Callbacks callbacks_;

  NodeShare share_;
  std::vector<NodeGate> gates_;
  std::vector<std::string> images_;
  bool runtime_ready_ = false;
  std::optional<Clock::time_point> asked_engine_;              // a question is under way since
  bool engine_failed_ = true;                                  // the next question is a canary
  std::vector<std::pair<std::string, std::int32_t>> devices_;  // UUID and minor, as in the CDI file
  bool devices_known_ = false;
  CdiSpec cdi_;  // what the CDI file says once devices_known_
  Clock::time_point started_;

  std::unique_ptr<GpuProbe> probe_;
  std::unique_ptr<Runtime> runtime_;  // made on the engine's thread, before runtime_ready_
  std::unique_ptr<WorkerPool> gpu_worker_;
  std::unique_ptr<WorkerPool> engine_;  // last: its thread uses all of the above
};

// "bmgpu.io/m<8 digits of the market>-<node>" unless the configuration names one. A class begins
// with a letter; a market may begin with a digit.
std::string cdi_kind_of(const AgentConfig& config, const v1::NodeFile& node);
// <state_dir>/dev: device files of simulated GPUs.
std::string device_dir(const AgentConfig& config);
GpuProbeOptions probe_options(const AgentConfig& config);
RuntimeOptions runtime_options(const AgentConfig& config, const v1::NodeFile& node);

}  // namespace bmgpu::agent
